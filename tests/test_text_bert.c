/* What padding means to a BERT. */
#include "text/bert.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 8, VOCAB = 10, LENGTH = 5, PAD = 3 };

static vlp_params *params;
static vlp_bert bert;
static vlp_tape *tape;

static int set_up(void **state) {
    (void)state;
    vlp_bert_config config = {.vocab = VOCAB,
                              .positions = LENGTH,
                              .types = 2,
                              .width = WIDTH,
                              .depth = 2,
                              .heads = 2,
                              .mlp_width = 12,
                              .act = VLP_ACT_GELU,
                              .eps = 1e-12,
                              .pad_id = PAD};
    assert_int_equal(vlp_params_new(&params), VLP_OK);
    assert_int_equal(vlp_bert_declare(&bert, params, &config), VLP_OK);
    assert_int_equal(vlp_params_allocate(params, true), VLP_OK);
    vlp_params_init(params, 7);
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    return vlp_tape_open(tape, 1 << 20) == VLP_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    vlp_tape_free(tape);
    vlp_bert_free(&bert);
    vlp_params_free(params);
    return 0;
}

static vlp_tensor *encode(const int32_t *ids, const uint8_t *mask) {
    vlp_tape_begin(tape, 0, 0);
    vlp_tokens tokens = {.batch = 1, .length = LENGTH, .ids = ids, .attention_mask = mask};
    return vlp_bert_forward(tape, &bert, &tokens, NULL);
}

/* Even where it is attended to, the padding row learns nothing from being looked up. */
static void test_text_bert__the_padding_row_gets_no_gradient(void **state) {
    (void)state;
    static const int32_t ids[] = {1, PAD, 2, 1, 4};
    vlp_real cotangent[LENGTH * WIDTH];
    for (int i = 0; i < LENGTH * WIDTH; i++) cotangent[i] = (vlp_real)sin(i);
    vlp_tape_seed(tape, encode(ids, NULL), cotangent);
    assert_int_equal(vlp_tape_backward(tape, NULL), VLP_OK);
    const vlp_real *grad = bert.words->grad;
    for (int row = 0; row < VOCAB; row++) {
        bool moved = false;
        for (int d = 0; d < WIDTH; d++) moved |= grad[row * WIDTH + d] != 0;
        assert_int_equal(moved, row == 1 || row == 2 || row == 4);
    }
}

/* Padding on the left: what stands there does not matter, and positions count from the row's
 * start. */
static void test_text_bert__masked_tokens_do_not_matter(void **state) {
    (void)state;
    static const uint8_t mask[] = {0, 0, 1, 1, 1};
    static const int32_t one[] = {PAD, PAD, 5, 6, 7}, other[] = {8, 9, 5, 6, 7};
    vlp_real kept[LENGTH * WIDTH];
    memcpy(kept, vlp_real_data(encode(one, mask)), sizeof kept);
    const vlp_real *again = vlp_real_data(encode(other, mask));
    for (int i = 2 * WIDTH; i < LENGTH * WIDTH; i++) assert_true(kept[i] == again[i]);
    again = vlp_real_data(encode(other, NULL));
    assert_true(fabs((double)(kept[2 * WIDTH] - again[2 * WIDTH])) > 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text_bert__the_padding_row_gets_no_gradient, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_text_bert__masked_tokens_do_not_matter, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
