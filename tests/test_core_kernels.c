/* Elementwise kernels, sums, optimizer step, dropout and bfloat16, on every instruction set. */
#include "core/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 67 };

static const double EPS = (double)VLP_REAL_EPSILON;
static const vlp_kernels *k;
static vlp_rng rng;

static vlp_real normal(void) {
    return (vlp_real)vlp_rng_normal(&rng);
}

static void fill_normal(vlp_real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = normal();
}

static void check_near(const char *what, vlp_real got, double want, double bound) {
    if (isnan(want) ? !isnan(got) : !((double)got == want || fabs((double)got - want) <= bound))
        fail_msg("%s %s: %.9g, want %.9g", k->name, what, (double)got, want);
}

/* Every test runs on every set that this CPU has. */
static void on_every_set(void (*test)(void)) {
    for (int isa = 0; isa < VLP_ISA_COUNT; isa++) {
        k = vlp_kernels_of((vlp_isa)isa);
        assert_true(k != NULL || isa > (int)vlp_isa_best());
        if (!k) continue;
        assert_int_equal(k->isa, isa);
        rng = vlp_rng_at(11, VLP_RNG_TEST, 0, 0);
        test();
    }
}

static double ref_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double ref_gelu_tanh(double x) {
    return x * ref_sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x));
}

static double ref_act(vlp_act act, double x) {
    switch (act) {
    case VLP_ACT_GELU:
        return x * 0.5 * erfc(-x * 0.70710678118654752);
    case VLP_ACT_GELU_TANH:
        return ref_gelu_tanh(x);
    case VLP_ACT_QUICK_GELU:
        return x * ref_sigmoid(1.702 * x);
    case VLP_ACT_RELU:
        return x < 0 ? 0 : x;
    case VLP_ACT_SILU:
        return x * ref_sigmoid(x);
    case VLP_ACT_TANH:
        return tanh(x);
    case VLP_ACT_SIGMOID:
        return ref_sigmoid(x);
    default:
        return x;
    }
}

/* Central difference of the double reference: good to about 1e-9. */
static double ref_slope(vlp_act act, double x) {
    const double h = 1e-5;
    if (act == VLP_ACT_RELU) return x > 0;
    return (ref_act(act, x + h) - ref_act(act, x - h)) / (2 * h);
}

static void acts_match(void) {
    for (int act = 0; act < VLP_ACT_COUNT; act++) {
        for (int64_t n = 0; n <= MOST; n++) {
            vlp_real x[MOST + 1], y[MOST + 1], dy[MOST + 1], dx[MOST + 1];
            for (int64_t i = 0; i <= n; i++) x[i] = 3 * normal();
            fill_normal(dy, n);
            y[n] = dx[n] = 77;
            k->act(n, (vlp_act)act, x, y);
            k->act_backward(n, (vlp_act)act, x, dy, dx);
            for (int64_t i = 0; i < n; i++) {
                double v = (double)x[i];
                check_near("act", y[i], ref_act((vlp_act)act, v), 4 * EPS * (1 + fabs(v)));
                check_near("slope", dx[i], (double)dy[i] * ref_slope((vlp_act)act, v),
                           fabs((double)dy[i]) * (8 * EPS + 1e-9));
            }
            assert_true(y[n] == 77 && dx[n] == 77); /* nothing beyond the end */
            k->act_backward(n, (vlp_act)act, x, dy, dy);
            k->act(n, (vlp_act)act, x, x);
            assert_memory_equal(x, y, (size_t)n * sizeof *x);
            assert_memory_equal(dy, dx, (size_t)n * sizeof *x);
        }
    }
}

/* (worst error of act_half, worst of act_half_backward) over x [n] */
static void half_errors(vlp_act act, int64_t n, const vlp_real *x, double worst[2]) {
    enum { PART = 512 };
    vlp_real y[PART], slope[PART], ones[PART];
    for (int i = 0; i < PART; i++) ones[i] = 1;
    for (int64_t at = 0; at < n; at += PART) {
        int64_t part = n - at < PART ? n - at : PART;
        k->act_half(part, act, x + at, y);
        k->act_half_backward(part, act, x + at, ones, slope);
        for (int64_t i = 0; i < part; i++) {
            double v = (double)x[at + i], size = fabs(v) > 8 ? fabs(v) : 1;
            worst[0] = fmax(worst[0], fabs((double)y[i] - ref_act(act, v)) / size);
            worst[1] =
                fmax(worst[1], fabs((double)slope[i] - ref_slope(act, fmin(fmax(v, -50), 50))));
        }
    }
}

/* Every finite bfloat16, and floats close together where the functions bend */
static void half_acts_keep_their_bounds(void) {
    enum { HALVES = 1 << 16, STEP = 4096, FLOATS = 24 * STEP };
    static vlp_real x[HALVES + FLOATS];
    int64_t n = 0;
    for (uint32_t i = 0; i < HALVES; i++) {
        float value;
        uint32_t bits = i << 16;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value)) x[n++] = (vlp_real)value;
    }
    for (int i = 0; i < FLOATS; i++) x[n++] = (vlp_real)(i - FLOATS / 2) / STEP;
    for (int act = VLP_ACT_GELU; act <= VLP_ACT_GELU_TANH; act++) {
        double worst[2] = {0};
        half_errors((vlp_act)act, n, x, worst);
        assert_true(worst[0] > 1e-5 && worst[0] < 1.3e-4);
        assert_true(worst[1] > 1e-5 && worst[1] < 2.1e-4);
    }
    vlp_real odd[4] = {VLP_R(NAN), VLP_R(INFINITY), -VLP_R(INFINITY), 0}, y[4], slope[4];
    vlp_real ones[4] = {1, 1, 1, 1};
    k->act_half(4, VLP_ACT_GELU, odd, y);
    k->act_half_backward(4, VLP_ACT_GELU, odd, ones, slope);
    assert_true(isnan(y[0]) && isinf(y[1]) && y[1] > 0 && y[2] == 0 && y[3] == 0);
    assert_true(isnan(slope[0]) && fabs((double)slope[1] - 1) < 1e-4);
    vlp_real exact[4];
    k->act(4, VLP_ACT_SILU, ones, exact);
    k->act_half(4, VLP_ACT_SILU, ones, y);
    assert_memory_equal(y, exact, sizeof y);
}

static void test_core_kernels__half_acts_keep_their_bounds(void **state) {
    (void)state;
    on_every_set(half_acts_keep_their_bounds);
}

static void acts_survive_extremes(void) {
    const vlp_real big = VLP_REAL_MAX, inf = VLP_R(INFINITY);
    for (int act = 0; act < VLP_ACT_COUNT; act++) {
        vlp_real x[6] = {-big, big, -1e20f, 1e20f, VLP_R(NAN), 0}, ones[6], y[6], slope[6];
        bool bounded = act == VLP_ACT_TANH || act == VLP_ACT_SIGMOID, none = act == VLP_ACT_NONE;
        for (int i = 0; i < 6; i++) ones[i] = 1;
        k->act(6, (vlp_act)act, x, y);
        k->act_backward(6, (vlp_act)act, x, ones, slope);
        for (int i = 0; i < 4; i += 2) {
            assert_true(none ? y[i] == x[i] : y[i] == (act == VLP_ACT_TANH ? -1 : 0));
            assert_true(bounded ? y[i + 1] == 1 : y[i + 1] == x[i + 1]);
            assert_true(slope[i] == (none ? 1 : 0));
            assert_true(slope[i + 1] == (bounded ? 0 : 1));
        }
        assert_true(isnan(y[4]));
        assert_true(y[5] == (act == VLP_ACT_SIGMOID ? VLP_R(0.5) : 0));
    }
    vlp_real x[7] = {-inf, inf, VLP_R(NAN), 0, -0.0f, -200, 200}, e[7], t[7], f[7];
    k->exp(7, x, e);
    k->tanh(7, x, t);
    k->erf(7, x, f);
    assert_true(e[0] == 0 && e[1] == inf && isnan(e[2]) && e[3] == 1 && e[4] == 1);
    assert_true(t[0] == -1 && t[1] == 1 && isnan(t[2]) && t[3] == 0 && signbit(t[4]) && t[5] == -1);
    assert_true(f[0] == -1 && f[1] == 1 && isnan(f[2]) && f[3] == 0 && signbit(f[4]) && f[6] == 1);
}

/* Units in the last place of the vlp_real nearest to x, denormals included */
static double ulp(double x) {
    int exponent;
    frexp(x, &exponent);
    return fmax(ldexp(EPS, exponent - 1), VLP_REAL_EPSILON < 1e-10 ? 0x1p-1074 : 0x1p-149);
}

static void check_ulps(const char *what, void (*f)(int64_t, const vlp_real *, vlp_real *),
                       double (*reference)(double), double bound) {
    vlp_real x[512], y[512];
    for (int block = 0; block < 400; block++) {
        for (int i = 0; i < 512; i++) {
            double size = exp((vlp_rng_double(&rng) - 0.8) * 30);
            double value = vlp_rng_below(&rng, 2) ? size : -size;
            x[i] = (vlp_real)fmax(-110, fmin(88, value));
        }
        f(512, x, y);
        for (int i = 0; i < 512; i++) {
            double want = reference((double)x[i]);
            check_near(what, y[i], want, bound * ulp(want));
        }
    }
}

static void elementary_functions_are_accurate(void) {
    check_ulps("exp", k->exp, exp, 1.5);
    check_ulps("tanh", k->tanh, tanh, 3);
    check_ulps("erf", k->erf, erf, 3);
}

static void bias_act_keeps_the_preactivation(void) {
    for (int64_t cols = 1; cols <= MOST; cols++) {
        vlp_real x[3 * MOST], old[3 * MOST], y[3 * MOST], bias[MOST];
        fill_normal(x, 3 * cols);
        fill_normal(bias, cols);
        memcpy(old, x, sizeof x);
        k->bias_act(3, cols, cols % 3 ? bias : NULL, VLP_ACT_GELU, x, y);
        for (int64_t i = 0; i < 3 * cols; i++) {
            double pre = (double)old[i] + (cols % 3 ? (double)bias[i % cols] : 0);
            check_near("pre", x[i], pre, 2 * EPS * fabs(pre));
            check_near("bias_act", y[i], ref_act(VLP_ACT_GELU, (double)x[i]), 4 * EPS);
        }
        k->bias_act(3, cols, bias, VLP_ACT_NONE, x, x);
    }
}

static void vectors_match(void) {
    for (int64_t n = 0; n <= MOST; n++) {
        vlp_real x[MOST] = {0}, y[MOST] = {0}, z[6][MOST + 1];
        fill_normal(x, n);
        fill_normal(y, n);
        for (int i = 0; i < 6; i++) memcpy(z[i], y, sizeof y), z[i][n] = 77;
        k->add(n, x, z[0]);
        k->axpy(n, VLP_R(-0.5), x, z[1]);
        k->scale(n, 3, z[2]);
        k->mul(n, x, y, z[3]);
        k->fill(n, 9, z[4]);
        k->lerp(n, VLP_R(0.25), x, z[5]);
        double sum = 0, squares = 0, dot = 0, size = 0;
        for (int64_t i = 0; i < n; i++) {
            double a = (double)x[i], b = (double)y[i], e = 2 * EPS * (1 + fabs(a) + fabs(b));
            check_near("add", z[0][i], a + b, e);
            check_near("axpy", z[1][i], b - 0.5 * a, e);
            check_near("scale", z[2][i], 3 * b, 2 * e);
            check_near("mul", z[3][i], a * b, EPS * fabs(a * b));
            check_near("fill", z[4][i], 9, 0);
            check_near("lerp", z[5][i], b + 0.25 * (a - b), e);
            sum += a, squares += a * a, dot += a * b, size += fabs(a * b) + fabs(a) + a * a;
        }
        for (int i = 0; i < 6; i++) assert_true(z[i][n] == 77);
        assert_true(fabs(k->sum(n, x) - sum) <= 1e-14 * size);
        assert_true(fabs(k->sum_squares(n, x) - squares) <= 1e-14 * size);
        assert_true(fabs(k->dot(n, x, y) - dot) <= 1e-14 * size);
    }
}

static void all_finite_finds_one_bad_value_anywhere(void) {
    const vlp_real bad[] = {VLP_R(NAN), VLP_R(INFINITY), -VLP_R(INFINITY)};
    vlp_real x[MOST] = {0};
    for (int64_t n = 0; n <= MOST; n++) {
        for (int64_t i = 0; i < n; i++) x[i] = i % 2 ? VLP_REAL_MAX : -VLP_REAL_MAX;
        assert_true(k->all_finite(n, x));
        for (int64_t i = 0; i < n; i++) {
            vlp_real kept = x[i];
            x[i] = bad[i % 3];
            assert_false(k->all_finite(n, x));
            x[i] = kept;
        }
    }
}

static void column_sums_are_accurate(void) {
    for (int64_t cols = 1; cols <= 2 * MOST; cols += 3) {
        int64_t rows = cols * 5 % 131, ld = cols + 2;
        vlp_real *x = malloc((size_t)(rows * ld + 1) * sizeof *x), out[2 * MOST + 1];
        fill_normal(x, rows * ld);
        for (int64_t j = 0; j < cols; j++) out[j] = 1;
        out[cols] = 77;
        k->column_sum(rows, cols, x, ld, out);
        for (int64_t j = 0; j < cols; j++) {
            double want = 1, size = 1;
            for (int64_t i = 0; i < rows; i++)
                want += (double)x[i * ld + j], size += fabs((double)x[i * ld + j]);
            check_near("column_sum", out[j], want, 8 * EPS * size);
        }
        assert_true(out[cols] == 77);
        free(x);
    }
    enum { LONG = 1 << 20 };
    vlp_real *ones = malloc(LONG * sizeof *ones), total = 0;
    for (int i = 0; i < LONG; i++) ones[i] = VLP_R(0.1);
    k->column_sum(LONG, 1, ones, 1, &total); /* a plain float loop is off by 1 % */
    check_near("long column", total, LONG * (double)VLP_R(0.1), LONG * 1e-6);
    free(ones);
}

static void adamw_matches_its_equations(void) {
    for (int64_t n = 0; n <= MOST; n += 3) {
        const vlp_adamw step = {1e-2, 0.9, 0.98, 1e-6, 0.3, 0.19, 0.0396, 0.5, n % 2};
        vlp_real p[MOST] = {0}, g[MOST] = {0}, m[MOST] = {0}, v[MOST] = {0}, p0[MOST], m0[MOST],
                 v0[MOST];
        fill_normal(p, n), fill_normal(g, n), fill_normal(m, n), fill_normal(v, n);
        for (int64_t i = 0; i < n; i++) v[i] *= v[i];
        memcpy(p0, p, sizeof p), memcpy(m0, m, sizeof m), memcpy(v0, v, sizeof v);
        k->adamw(n, &step, p, g, m, v);
        for (int64_t i = 0; i < n; i++) {
            double d = (double)g[i] * 0.5, keep = 1 - 1e-2 * 0.3;
            double first = 0.9 * (double)m0[i] + (1 - 0.9) * d;
            double second = 0.98 * (double)v0[i] + (1 - 0.98) * d * d;
            double move = 1e-2 * (first / 0.19) / (sqrt(second / 0.0396) + 1e-6);
            double want =
                step.decay_last ? ((double)p0[i] - move) * keep : (double)p0[i] * keep - move;
            check_near("m", m[i], first, 4 * EPS);
            check_near("v", v[i], second, 4 * EPS * (1 + second));
            check_near("p", p[i], want, 8 * EPS * (1 + fabs((double)p0[i])));
        }
    }
}

static void dropout_is_a_function_of_the_element(void) {
    enum { LONG = 100000 };
    vlp_real *x = malloc(LONG * sizeof *x), *y = malloc(LONG * sizeof *y);
    vlp_real *z = malloc(LONG * sizeof *z);
    k->fill(LONG, 3, x);
    vlp_rng stream = vlp_rng_at(5, VLP_RNG_DROPOUT, 3, 2);
    k->dropout(0, LONG, &stream, 0.25, x, y);
    int64_t dropped = 0;
    for (int i = 0; i < LONG; i++) {
        assert_true(y[i] == 0 || y[i] == 4);
        dropped += y[i] == 0;
    }
    assert_in_range(dropped, 24500, 25500);
    for (int64_t begin = 0, step = 1; begin < LONG; begin += step, step = 1 + step * 7 % 301) {
        if (step > LONG - begin) step = LONG - begin;
        k->dropout(begin, step, &stream, 0.25, x + begin, z + begin);
    }
    assert_memory_equal(y, z, LONG * sizeof *y);
    for (int64_t i = 0; i < 200; i++) { /* the stream as documented */
        uint32_t out[4], counter[4];
        memcpy(counter, stream.counter, sizeof counter);
        counter[0] = (uint32_t)(i / 64 * 16 + i % 16);
        vlp_philox(counter, stream.key, out);
        assert_int_equal(y[i] == 0, out[i / 16 % 4] < 0x40000000u);
    }
    k->dropout(0, LONG, &stream, 0, x, z);
    assert_memory_equal(x, z, LONG * sizeof *x);
    free(x), free(y), free(z);
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void bf16_rounds_to_nearest_even(void) {
    static const struct {
        uint32_t bits;
        uint16_t want;
    } cases[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},
                 {0x3f808001, 0x3f81}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
                 {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xffffffff, 0xffff},
                 {0x80000000, 0x8000}, {0x00000001, 0x0000}, {0x0000ffff, 0x0001}};
    for (size_t n = 1; n <= MOST; n++) {
        float x[MOST], back[MOST];
        uint16_t y[MOST + 1];
        y[n] = 77;
        for (size_t i = 0; i < n; i++) x[i] = float_of(cases[(i + n) % VLP_COUNT(cases)].bits);
        k->to_bf16((int64_t)n, x, y);
        k->from_bf16((int64_t)n, y, back);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(y[i], cases[(i + n) % VLP_COUNT(cases)].want);
            float want = float_of((uint32_t)y[i] << 16);
            assert_memory_equal(back + i, &want, sizeof want);
        }
        assert_int_equal(y[n], 77);
    }
}

#define KERNEL_TEST(name, body)                                                                    \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        on_every_set(body);                                                                        \
    }

KERNEL_TEST(test_core_kernels__acts_and_slopes_match, acts_match)
KERNEL_TEST(test_core_kernels__acts_survive_extremes, acts_survive_extremes)
KERNEL_TEST(test_core_kernels__exp_tanh_erf_within_ulps, elementary_functions_are_accurate)
KERNEL_TEST(test_core_kernels__bias_act_keeps_preactivation, bias_act_keeps_the_preactivation)
KERNEL_TEST(test_core_kernels__vectors_match, vectors_match)
KERNEL_TEST(test_core_kernels__all_finite, all_finite_finds_one_bad_value_anywhere)
KERNEL_TEST(test_core_kernels__column_sums_are_accurate, column_sums_are_accurate)
KERNEL_TEST(test_core_kernels__adamw_matches, adamw_matches_its_equations)
KERNEL_TEST(test_core_kernels__dropout_depends_on_element_only,
            dropout_is_a_function_of_the_element)
KERNEL_TEST(test_core_kernels__bf16_rounds_to_nearest_even, bf16_rounds_to_nearest_even)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_kernels__acts_and_slopes_match),
        cmocka_unit_test(test_core_kernels__acts_survive_extremes),
        cmocka_unit_test(test_core_kernels__half_acts_keep_their_bounds),
        cmocka_unit_test(test_core_kernels__exp_tanh_erf_within_ulps),
        cmocka_unit_test(test_core_kernels__bias_act_keeps_preactivation),
        cmocka_unit_test(test_core_kernels__vectors_match),
        cmocka_unit_test(test_core_kernels__all_finite),
        cmocka_unit_test(test_core_kernels__column_sums_are_accurate),
        cmocka_unit_test(test_core_kernels__adamw_matches),
        cmocka_unit_test(test_core_kernels__dropout_depends_on_element_only),
        cmocka_unit_test(test_core_kernels__bf16_rounds_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
