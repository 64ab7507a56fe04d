/* Weights that carry positions from one grid of patches to another. */
#include "vision/vit_positions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 64 * 64 };

static vlp_real matrix[MOST];

static void test_vision_vit_positions__the_same_grid_is_the_identity(void **state) {
    (void)state;
    vlp_position_weights((vlp_grid){3, 5}, (vlp_grid){3, 5}, 1, 0, matrix);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            assert_true(fabs((double)matrix[16 * i + j] - (i == j)) < 1e-6);
}

static void test_vision_vit_positions__weights_add_up_to_one(void **state) {
    (void)state;
    static const double offsets[] = {0, 0.1};
    for (int k = 0; k < 2; k++) {
        vlp_position_weights((vlp_grid){2, 7}, (vlp_grid){5, 3}, 1, offsets[k], matrix);
        for (int i = 0; i < 16; i++) {
            double sum = 0;
            for (int j = 0; j < 15; j++) sum += (double)matrix[15 * i + j];
            assert_true(fabs(sum - 1) < 1e-6);
        }
        assert_true(matrix[0] == 1);
    }
}

/* From 2 columns to 4: the second new one lies at 0.25, and its four taps at -1, 0, 1, 2 are
 * clamped to the two that there are. */
static void test_vision_vit_positions__a_value_by_hand(void **state) {
    (void)state;
    vlp_position_weights((vlp_grid){1, 2}, (vlp_grid){1, 4}, 1, 0, matrix);
    const vlp_real *row = matrix + 2 * 3;
    assert_true(row[0] == 0);
    assert_true(fabs((double)row[1] - (-0.10546875 + 0.87890625)) < 1e-6);
    assert_true(fabs((double)row[2] - (0.26171875 - 0.03515625)) < 1e-6);
}

/* The rows that torch.nn.functional.interpolate(mode="bicubic", antialias=True) gives: 4 to 2 and 3
 * to 5 columns, no class token. */
static void test_vision_vit_positions__smooth_weights_are_torchs(void **state) {
    (void)state;
    static const double fewer[] = {0.45867768595, 0.45867768595, 0.11983471074, -0.03719008264},
                        more[] = {0.64925373134, 0.39552238806, -0.04477611940};
    vlp_position_weights_smooth((vlp_grid){1, 4}, (vlp_grid){1, 2}, 0, matrix);
    for (int i = 0; i < 4; i++) assert_true(fabs((double)matrix[i] - fewer[i]) < 1e-7);
    for (int i = 0; i < 4; i++) assert_true(fabs((double)matrix[4 + i] - fewer[3 - i]) < 1e-7);
    vlp_position_weights_smooth((vlp_grid){3, 1}, (vlp_grid){5, 1}, 1, matrix);
    assert_true(matrix[0] == 1 && matrix[1] == 0);
    for (int i = 0; i < 3; i++) assert_true(fabs((double)matrix[4 * 2 + 1 + i] - more[i]) < 1e-7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vision_vit_positions__the_same_grid_is_the_identity),
        cmocka_unit_test(test_vision_vit_positions__weights_add_up_to_one),
        cmocka_unit_test(test_vision_vit_positions__a_value_by_hand),
        cmocka_unit_test(test_vision_vit_positions__smooth_weights_are_torchs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
