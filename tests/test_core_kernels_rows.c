/* Norms, softmax, cross-entropy and L2 normalisation of rows, on every instruction set. */
#include "core/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 67, ROWS = 3, N = ROWS * MOST };

static const double EPS = (double)VLP_REAL_EPSILON;
static const vlp_kernels *k;
static vlp_rng rng;

static void fill_normal(vlp_real *x, int64_t n, double scale, double shift) {
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)(scale * vlp_rng_normal(&rng) + shift);
}

static void check_near(const char *what, vlp_real got, double want, double bound) {
    if (isnan(want) ? !isnan(got) : !((double)got == want || fabs((double)got - want) <= bound))
        fail_msg("%s %s: %.9g, want %.9g", k->name, what, (double)got, want);
}

/* Every test runs on every set that this CPU has, for every number of columns. */
static void on_every_set(void (*test)(int64_t cols)) {
    for (int isa = 0; isa < VLP_ISA_COUNT; isa++) {
        k = vlp_kernels_of((vlp_isa)isa);
        if (!k) continue;
        rng = vlp_rng_at(12, VLP_RNG_TEST, 0, 0);
        for (int64_t cols = 1; cols <= MOST; cols++) test(cols);
    }
}

typedef struct {
    long double mean, rstd; /* a mean far from 0 costs a double's last digits, too */
} stats;

static stats reference_stats(int64_t cols, const double *h, double eps, bool centered) {
    long double mean = 0, var = 0;
    for (int64_t j = 0; j < cols && centered; j++) mean += h[j] / (long double)cols;
    for (int64_t j = 0; j < cols; j++) var += (h[j] - mean) * (h[j] - mean) / (long double)cols;
    return (stats){mean, 1 / sqrtl(var + eps)};
}

static double standard(stats s, double h) {
    return (double)((h - s.mean) * s.rstd);
}

static void check_norm(int64_t cols, bool centered, const vlp_real *x, const vlp_real *residual,
                       const vlp_real *weight, const vlp_real *bias, double slack) {
    vlp_real sum[N], y[N + 1], mean[ROWS], rstd[ROWS];
    y[ROWS * cols] = 77;
    if (centered)
        k->layer_norm(ROWS, cols, x, residual, weight, bias, 1e-5, sum, y, mean, rstd);
    else
        k->rms_norm(ROWS, cols, x, residual, weight, 1e-5, sum, y, rstd);
    assert_true(y[ROWS * cols] == 77);
    for (int64_t i = 0; i < ROWS; i++) {
        double h[MOST];
        for (int64_t j = 0; j < cols; j++) {
            int64_t at = i * cols + j;
            h[j] = (double)x[at] + (residual ? (double)residual[at] : 0);
            check_near("sum", sum[at], h[j], EPS * fabs(h[j]));
            h[j] = (double)sum[at];
        }
        stats s = reference_stats(cols, h, 1e-5, centered);
        if (centered)
            check_near("mean", mean[i], (double)s.mean, 2 * EPS * ((double)fabsl(s.mean) + 1));
        check_near("rstd", rstd[i], (double)s.rstd, 16 * EPS * (double)s.rstd * slack);
        for (int64_t j = 0; j < cols; j++) {
            double want = standard(s, h[j]) * (weight ? (double)weight[j] : 1) +
                          (centered && bias ? (double)bias[j] : 0);
            check_near("norm", y[i * cols + j], want, 32 * EPS * (1 + fabs(want)) * slack);
        }
    }
}

static void norms_match(int64_t cols) {
    vlp_real x[N], residual[N], weight[MOST], bias[MOST];
    fill_normal(x, ROWS * cols, 1, 0.3), fill_normal(residual, ROWS * cols, 1, 0);
    fill_normal(weight, cols, 1, 0), fill_normal(bias, cols, 1, 0);
    for (int centered = 0; centered < 2; centered++) {
        check_norm(cols, centered, x, residual, weight, bias, 4);
        check_norm(cols, centered, x, NULL, NULL, NULL, 4);
        check_norm(cols, centered, x, residual, weight, NULL, 4);
    }
    fill_normal(x, ROWS * cols, 1, 10000); /* mean >> deviation: naive sums of squares fail */
    if (cols > 8) check_norm(cols, true, x, NULL, weight, bias, 4);
    vlp_real kept[N], y[N];
    memcpy(kept, x, sizeof x);
    k->layer_norm(ROWS, cols, x, residual, weight, bias, 1e-5, NULL, y, NULL, NULL);
    assert_memory_equal(kept, x, (size_t)(ROWS * cols) * sizeof *x);
    k->layer_norm(ROWS, cols, x, residual, weight, bias, 1e-5, NULL, x, NULL, NULL); /* in place */
    assert_memory_equal(x, y, (size_t)(ROWS * cols) * sizeof *x);
}

static void constant_rows_stay_finite(int64_t cols) {
    vlp_real x[N], y[N];
    k->fill(ROWS * cols, VLP_R(1e4), x);
    k->layer_norm(ROWS, cols, x, NULL, NULL, NULL, 1e-6, NULL, y, NULL, NULL);
    for (int64_t i = 0; i < ROWS * cols; i++) check_near("constant", y[i], 0, 1e-3);
    k->layer_norm(0, cols, NULL, NULL, NULL, NULL, 1e-6, NULL, NULL, NULL, NULL);
}

/* dx by the definition: J^T dy with the derivative of the normalisation written out in double */
static void check_norm_backward(int64_t cols, int64_t rows, bool centered) {
    size_t bytes = (size_t)(rows * cols) * sizeof(vlp_real);
    vlp_real *x = malloc(bytes), *y = malloc(bytes), *dy = malloc(bytes), *dx = malloc(bytes);
    vlp_real *mean = malloc((size_t)rows * sizeof *x), *rstd = malloc((size_t)rows * sizeof *x);
    vlp_real weight[MOST], dweight[MOST], dbias[MOST];
    double want_weight[MOST], want_bias[MOST];
    fill_normal(x, rows * cols, 1, 0.5), fill_normal(dy, rows * cols, 1, 0);
    fill_normal(weight, cols, 1, 0);
    k->fill(rows * cols, 1, dx), k->fill(cols, 2, dweight), k->fill(cols, 3, dbias);
    for (int64_t j = 0; j < cols; j++) want_weight[j] = 2, want_bias[j] = 3;
    if (centered) {
        k->layer_norm(rows, cols, x, NULL, weight, NULL, 1e-2, NULL, y, mean, rstd);
        k->layer_norm_backward(rows, cols, x, weight, mean, rstd, dy, dx, dweight, dbias);
    } else {
        k->rms_norm(rows, cols, x, NULL, weight, 1e-2, NULL, y, rstd);
        k->rms_norm_backward(rows, cols, x, weight, rstd, dy, dx, dweight);
    }
    for (int64_t i = 0; i < rows; i++) {
        double h[MOST], g_sum = 0, gn_sum = 0;
        for (int64_t j = 0; j < cols; j++) h[j] = (double)x[i * cols + j];
        stats s = reference_stats(cols, h, 1e-2, centered);
        double rstd_i = (double)s.rstd;
        for (int64_t j = 0; j < cols; j++) {
            double d = (double)dy[i * cols + j], n = standard(s, h[j]);
            g_sum += centered ? d * (double)weight[j] / (double)cols : 0;
            gn_sum += d * (double)weight[j] * n / (double)cols;
            want_weight[j] += d * n, want_bias[j] += d;
        }
        for (int64_t j = 0; j < cols; j++) {
            double n = standard(s, h[j]), g = (double)dy[i * cols + j] * (double)weight[j];
            check_near("norm dx", dx[i * cols + j], 1 + rstd_i * (g - g_sum - n * gn_sum),
                       64 * EPS * (1 + rstd_i * rstd_i) * 4);
        }
    }
    for (int64_t j = 0; j < cols; j++) {
        check_near("dweight", dweight[j], want_weight[j], 64 * EPS * (double)(rows + 4));
        check_near("dbias", dbias[j], centered ? want_bias[j] : 3, 16 * EPS * (double)(rows + 4));
    }
    if (centered) /* every output may be absent, and so may the weight */
        k->layer_norm_backward(rows, cols, x, NULL, mean, rstd, dy, NULL, NULL, dbias);
    free(x), free(y), free(dy), free(dx), free(mean), free(rstd);
}

static void norms_backward_match(int64_t cols) {
    check_norm_backward(cols, 1 + cols % 40, true);
    check_norm_backward(cols, 1 + cols % 40, false);
}

/* Softmax of one row in double; returns lse */
static double reference_softmax(int64_t cols, const vlp_real *x, const uint8_t *valid, double scale,
                                double *p) {
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < cols; j++)
        if (!valid || valid[j]) most = fmax(most, scale * (double)x[j]);
    for (int64_t j = 0; j < cols; j++) {
        bool in = (!valid || valid[j]) && most > -INFINITY;
        p[j] = in ? exp(scale * (double)x[j] - most) : 0;
        total += p[j];
    }
    for (int64_t j = 0; j < cols && total > 0; j++) p[j] /= total;
    return total > 0 ? most + log(total) : -INFINITY;
}

static void softmax_matches(int64_t cols) {
    vlp_real x[ROWS * (MOST + 2)], p[ROWS * (MOST + 2)], again[ROWS * (MOST + 2)], lse[ROWS];
    uint8_t valid[MOST];
    for (int64_t j = 0; j < cols; j++) valid[j] = (uint8_t)vlp_rng_below(&rng, 2);
    int64_t ld = cols + 2;
    fill_normal(x, ROWS * ld, 5, 1);
    for (int masked = 0; masked < 2; masked++) {
        const uint8_t *mask = masked ? valid : NULL;
        memcpy(p, x, sizeof x), memcpy(again, x, sizeof x);
        k->softmax(ROWS, cols, ld, p, mask, VLP_R(0.5), lse);
        k->exp_lse(ROWS, cols, ld, again, VLP_R(0.5), lse, mask);
        for (int64_t i = 0; i < ROWS; i++) {
            double want[MOST], want_lse = reference_softmax(cols, x + i * ld, mask, 0.5, want);
            check_near("lse", lse[i], want_lse, 8 * EPS * (1 + fabs(want_lse)));
            for (int64_t j = 0; j < cols; j++) {
                check_near("softmax", p[i * ld + j], want[j], 16 * EPS * want[j] + 1e-37);
                check_near("exp_lse", again[i * ld + j], want[j], 64 * EPS * want[j] + 1e-37);
            }
            assert_true(p[i * ld + cols] == x[i * ld + cols]); /* the gap stays */
        }
    }
    k->log_sum_exp(ROWS, cols, ld, x, lse);
    for (int64_t i = 0; i < ROWS; i++) {
        double p_row[MOST], want = reference_softmax(cols, x + i * ld, NULL, 1, p_row);
        check_near("log_sum_exp", lse[i], want, 8 * EPS * (1 + fabs(want)));
    }
}

static void softmax_survives_extremes(int64_t cols) {
    const vlp_real inf = VLP_R(INFINITY);
    vlp_real x[MOST] = {0}, lse;
    uint8_t none[MOST] = {0};
    k->fill(cols, -inf, x);
    k->log_sum_exp(1, cols, cols, x, &lse);
    assert_true(lse == -inf);
    k->softmax(1, cols, cols, x, NULL, 1, &lse);
    for (int64_t j = 0; j < cols; j++) assert_true(x[j] == 0);
    assert_true(lse == -inf);
    k->fill(cols, 3, x);
    k->exp_lse(1, cols, cols, x, 1, &lse, NULL);
    for (int64_t j = 0; j < cols; j++) assert_true(x[j] == 0);
    k->fill(cols, VLP_R(NAN), x);
    k->softmax(1, cols, cols, x, none, 1, &lse); /* what is masked is not seen */
    for (int64_t j = 0; j < cols; j++) assert_true(x[j] == 0);
    k->fill(cols, 1e30f, x);
    k->softmax(1, cols, cols, x, NULL, 1, &lse);
    for (int64_t j = 0; j < cols; j++) check_near("large", x[j], 1 / (double)cols, 4 * EPS);
    for (int all = 0; all < 2; all++) {
        k->fill(cols, all ? VLP_R(NAN) : 1, x);
        x[cols / 2] = VLP_R(NAN);
        k->log_sum_exp(1, cols, cols, x, &lse);
        assert_true(isnan(lse));
        k->softmax(1, cols, cols, x, NULL, 1, &lse);
        assert_true(isnan(lse) && isnan(x[cols / 2]));
    }
    k->log_sum_exp(1, 0, 0, x, &lse);
    assert_true(lse == -inf);
}

static void softmax_backward_matches(int64_t cols) {
    int64_t ld = cols + 1;
    vlp_real p[ROWS * (MOST + 1)], dp[ROWS * (MOST + 1)], got[2][ROWS * (MOST + 1)], delta[ROWS];
    fill_normal(p, ROWS * ld, 1, 0), fill_normal(dp, ROWS * ld, 1, 0);
    k->softmax(ROWS, cols, ld, p, NULL, 1, NULL);
    for (int64_t i = 0; i < ROWS; i++) delta[i] = (vlp_real)k->dot(cols, p + i * ld, dp + i * ld);
    memcpy(got[0], dp, sizeof dp), memcpy(got[1], dp, sizeof dp);
    k->softmax_backward(ROWS, cols, ld, p, got[0], delta, VLP_R(0.125));
    k->softmax_backward(ROWS, cols, ld, p, got[1], NULL, VLP_R(0.125));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < cols; j++) {
            int64_t at = i * ld + j;
            double want = 0.125 * (double)p[at] * ((double)dp[at] - (double)delta[i]);
            check_near("softmax backward", got[0][at], want, 4 * EPS);
            check_near("softmax backward", got[1][at], want, 4 * EPS);
        }
}

static void cross_entropy_backward_matches(int64_t cols) {
    vlp_real x[MOST] = {0}, dx[MOST] = {0}, lse;
    fill_normal(x, cols, 3, 0);
    k->log_sum_exp(1, cols, cols, x, &lse);
    int64_t target = cols / 3;
    k->fill(cols, 1, dx);
    k->cross_entropy_backward(cols, x, lse, target, VLP_R(0.5), dx);
    double sum = 0;
    for (int64_t j = 0; j < cols; j++) {
        double want = 1 + 0.5 * (exp((double)x[j] - (double)lse) - (j == target));
        check_near("cross entropy", dx[j], want, 8 * EPS);
        sum += (double)dx[j] - 1;
    }
    assert_true(fabs(sum) <= 16 * EPS * (double)cols);
    vlp_real kept[MOST];
    memcpy(kept, dx, sizeof dx);
    k->cross_entropy_backward(cols, x, lse, -100, 1, dx); /* ignored */
    assert_memory_equal(kept, dx, (size_t)cols * sizeof *dx);
}

static void l2_normalize_matches(int64_t cols) {
    vlp_real x[N], y[N], dy[N], dx[N], norm[ROWS];
    fill_normal(x, ROWS * cols, 2, 0), fill_normal(dy, ROWS * cols, 1, 0);
    k->fill(cols, 0, x); /* a zero row */
    k->fill(ROWS * cols, 1, dx);
    k->l2_normalize(ROWS, cols, x, 1e-3, y, norm);
    k->l2_normalize_backward(ROWS, cols, y, norm, 1e-3, dy, dx);
    for (int64_t i = 0; i < ROWS; i++) {
        double square = 0, along = 0;
        const vlp_real *at = x + i * cols, *ds = dy + i * cols;
        for (int64_t j = 0; j < cols; j++) square += (double)at[j] * (double)at[j];
        double length = sqrt(square), by = fmax(length, 1e-3);
        check_near("norm", norm[i], length, 2 * EPS * length);
        for (int64_t j = 0; j < cols && i; j++) along += (double)at[j] / by * (double)ds[j];
        for (int64_t j = 0; j < cols; j++) {
            double unit = (double)at[j] / by, want = 1 + ((double)ds[j] - unit * along) / by;
            check_near("unit", y[i * cols + j], unit, 4 * EPS);
            check_near("unit backward", dx[i * cols + j], want,
                       16 * EPS * (1 + (fabs(along) + fabs((double)ds[j])) / by));
        }
    }
}

#define ROW_TEST(name, body)                                                                       \
    static void name(void **state) {                                                               \
        (void)state;                                                                               \
        on_every_set(body);                                                                        \
    }

ROW_TEST(test_core_kernels__norms_match, norms_match)
ROW_TEST(test_core_kernels__constant_rows_stay_finite, constant_rows_stay_finite)
ROW_TEST(test_core_kernels__norms_backward_match, norms_backward_match)
ROW_TEST(test_core_kernels__softmax_matches, softmax_matches)
ROW_TEST(test_core_kernels__softmax_survives_extremes, softmax_survives_extremes)
ROW_TEST(test_core_kernels__softmax_backward_matches, softmax_backward_matches)
ROW_TEST(test_core_kernels__cross_entropy_backward_matches, cross_entropy_backward_matches)
ROW_TEST(test_core_kernels__l2_normalize_matches, l2_normalize_matches)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_kernels__norms_match),
        cmocka_unit_test(test_core_kernels__constant_rows_stay_finite),
        cmocka_unit_test(test_core_kernels__norms_backward_match),
        cmocka_unit_test(test_core_kernels__softmax_matches),
        cmocka_unit_test(test_core_kernels__softmax_survives_extremes),
        cmocka_unit_test(test_core_kernels__softmax_backward_matches),
        cmocka_unit_test(test_core_kernels__cross_entropy_backward_matches),
        cmocka_unit_test(test_core_kernels__l2_normalize_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
