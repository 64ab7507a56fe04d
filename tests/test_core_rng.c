#include "core/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Known answers of Philox4x32-10 from the Random123 distribution's kat_vectors. */
static void test_core_rng__philox_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        vlp_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void test_core_rng__moments_of_uniform_and_normal(void **state) {
    (void)state;
    vlp_rng rng = vlp_rng_at(7, VLP_RNG_TEST, 0, 1);
    enum { N = 200000 };
    double mean = 0, square = 0, normal = 0, normal_square = 0;
    for (int i = 0; i < N; i++) {
        double u = vlp_rng_double(&rng), z = vlp_rng_normal(&rng);
        mean += u / N;
        square += u * u / N;
        normal += z / N;
        normal_square += z * z / N;
    }
    assert_float_equal(mean, 0.5, 0.005);
    assert_float_equal(square, 1.0 / 3, 0.005);
    assert_float_equal(normal, 0, 0.01);
    assert_float_equal(normal_square, 1, 0.02);
}

static void test_core_rng__streams_differ_and_repeat(void **state) {
    (void)state;
    vlp_rng a = vlp_rng_at(1, VLP_RNG_MLM, 2, 3), same = vlp_rng_at(1, VLP_RNG_MLM, 2, 3);
    vlp_rng others[] = {vlp_rng_at(2, VLP_RNG_MLM, 2, 3), vlp_rng_at(1, VLP_RNG_MIM, 2, 3),
                        vlp_rng_at(1, VLP_RNG_MLM, 3, 3), vlp_rng_at(1, VLP_RNG_MLM, 2, 4)};
    uint64_t x = vlp_rng_u64(&a);
    assert_true(x == vlp_rng_u64(&same));
    for (size_t i = 0; i < 4; i++) assert_true(x != vlp_rng_u64(&others[i]));
}

static void test_core_rng__below_is_unbiased(void **state) {
    (void)state;
    vlp_rng rng = vlp_rng_at(9, VLP_RNG_TEST, 0, 0);
    int counts[3] = {0};
    for (int i = 0; i < 30000; i++) counts[vlp_rng_below(&rng, 3)]++;
    for (int i = 0; i < 3; i++) assert_in_range(counts[i], 9700, 10300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_rng__philox_known_answers),
        cmocka_unit_test(test_core_rng__moments_of_uniform_and_normal),
        cmocka_unit_test(test_core_rng__streams_differ_and_repeat),
        cmocka_unit_test(test_core_rng__below_is_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
