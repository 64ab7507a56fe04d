/* Where a text of CLIP is read. */
#include "text/clip_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The first of several largest ids: padding may repeat the end-of-text token. */
static void test_text_clip__reads_at_the_first_largest_id(void **state) {
    (void)state;
    const int32_t ids[] = {3, 9, 1, 9, 9, /**/ 8, 1, 2, 3, 4, /**/ 1, 2, 3, 4, 5};
    const vlp_real x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    vlp_tape *tape;
    assert_int_equal(vlp_tape_new(&tape), VLP_OK);
    assert_int_equal(vlp_tape_open(tape, 1 << 16), VLP_OK);
    vlp_tensor *rows = vlp_tape_input(tape, VLP_REAL, 3, (int64_t[]){3, 5, 1}, x, false);
    const vlp_clip_text text = {0};
    vlp_tensor *y =
        vlp_clip_text_end(tape, &text, rows, &(vlp_tokens){.batch = 3, .length = 5, .ids = ids});
    assert_non_null(y);
    assert_true(vlp_real_data(y)[0] == 1);
    assert_true(vlp_real_data(y)[1] == 5);
    assert_true(vlp_real_data(y)[2] == 14);
    vlp_tape_free(tape);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_clip__reads_at_the_first_largest_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
