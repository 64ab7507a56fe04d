#include "tests/grad_cases_embedding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_grad_embedding__agrees_with_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(grad_cases_embedding); i++)
        assert_true(gradcheck_run(&grad_cases_embedding[i], 1e-6) <= 1e-6);
}

static void test_grad_embedding__padding_gets_no_gradient(void **state) {
    (void)state;
    vlp_tape *tape = NULL;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    assert_int_equal(vlp_tape_open(tape, 1 << 16), VLP_OK);
    const vlp_real values[5 * 2] = {0}, ones[6 * 2] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    vlp_tensor *table = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){5, 2}, values, true);
    vlp_tensor *y = vlp_embedding(tape, table, embedding_ids, 1, (int64_t[]){6}, 2);
    vlp_tape_seed(tape, y, ones);
    assert_int_equal(vlp_tape_backward(tape, NULL), VLP_OK);
    const double times[] = {1, 1, 0, 0, 1}; /* row 2 is the padding, row 3 never used */
    for (int i = 0; i < 10; i++) assert_true(table->grad[i] == times[i / 2]);
    vlp_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grad_embedding__agrees_with_differences),
        cmocka_unit_test(test_grad_embedding__padding_gets_no_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
