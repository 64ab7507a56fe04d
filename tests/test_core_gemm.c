#include "core/ceiling.h"
#include "core/gemm.h"
#include "core/rng.h"
#include "core/threads.h"
#include "tests/valgrind.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static vlp_rng rng;

static int64_t below(int64_t n) {
    return (int64_t)vlp_rng_below(&rng, (uint64_t)n);
}

static vlp_real *random_block(int64_t n) {
    vlp_real *x = malloc(((size_t)n + 1) * sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)vlp_rng_normal(&rng);
    return x;
}

typedef struct {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
    vlp_real alpha, beta;
} product;

static product random_product(int64_t most) {
    product p = {.ta = below(2),
                 .tb = below(2),
                 .m = below(most),
                 .n = below(most),
                 .k = below(most),
                 .alpha = below(3) ? 1 : VLP_R(-0.75),
                 .beta = (vlp_real)(below(3) - 1)};
    p.lda = (p.ta ? p.m : p.k) + below(4);
    p.ldb = (p.tb ? p.k : p.n) + below(4);
    p.ldc = p.n + below(4);
    return p;
}

/* |error| <= eps * sqrt-ish growth of the sum of |a||b|, element by element; gaps untouched */
static void check_result(const product *p, const vlp_real *a, const vlp_real *b,
                         const vlp_real *before, const vlp_real *after) {
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->ldc; j++) {
            double old = (double)before[i * p->ldc + j], got = (double)after[i * p->ldc + j];
            if (j >= p->n) {
                assert_true(old == got);
                continue;
            }
            double sum = 0, size = 0;
            for (int64_t l = 0; l < p->k; l++) {
                double term = (double)a[p->ta ? l * p->lda + i : i * p->lda + l] *
                              (double)b[p->tb ? j * p->ldb + l : l * p->ldb + j];
                sum += term;
                size += fabs(term);
            }
            double want = (double)p->alpha * sum + (double)p->beta * old;
            double bound = 8 * (double)VLP_REAL_EPSILON * (size + fabs(old) + 1);
            if (!(fabs(got - want) <= bound))
                fail_msg("[%d,%d,%d] %d %d at %d,%d: %g, want %g", (int)p->m, (int)p->n, (int)p->k,
                         p->ta, p->tb, (int)i, (int)j, got, want);
        }
    }
}

typedef void (*gemm_function)(bool, bool, int64_t, int64_t, int64_t, vlp_real, const vlp_real *,
                              int64_t, const vlp_real *, int64_t, vlp_real, vlp_real *, int64_t);

static void check_product(const product *p, gemm_function multiply) {
    vlp_real *a = random_block((p->ta ? p->k : p->m) * p->lda);
    vlp_real *b = random_block((p->tb ? p->n : p->k) * p->ldb);
    vlp_real *c = random_block(p->m * p->ldc), *again = random_block(p->m * p->ldc);
    size_t bytes = (size_t)(p->m * p->ldc) * sizeof *c;
    vlp_real *before = malloc(bytes + 1);
    memcpy(before, c, bytes);
    memcpy(again, c, bytes);
    multiply(p->ta, p->tb, p->m, p->n, p->k, p->alpha, a, p->lda, b, p->ldb, p->beta, c, p->ldc);
    multiply(p->ta, p->tb, p->m, p->n, p->k, p->alpha, a, p->lda, b, p->ldb, p->beta, again,
             p->ldc);
    check_result(p, a, b, before, c);
    assert_memory_equal(c, again, bytes); /* the same bits again */
    free(a), free(b), free(c), free(again), free(before);
}

static void test_core_gemm__random_products_match_a_double_loop(void **state) {
    (void)state;
    rng = vlp_rng_at(1, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < (under_valgrind() ? 24 : 240); i++) {
        assert_int_equal(vlp_threads_set(1 + i % 3), VLP_OK);
        product p = random_product(i % 8 ? 40 : 160);
        check_product(&p, i % 5 ? vlp_gemm : vlp_gemm_serial);
    }
}

/* Large enough that every thread count splits, in both directions. */
static void test_core_gemm__split_products_match_a_double_loop(void **state) {
    (void)state;
    rng = vlp_rng_at(2, VLP_RNG_TEST, 0, 0);
    static const int64_t shapes[][3] = {
        {1040, 50, 33}, {37, 1100, 40}, {200, 190, 70}, {48, 48, 3000}, {65, 33, 5001}};
    for (int threads = 1; threads <= 5; threads += under_valgrind() ? 2 : 1)
        for (size_t i = 0; i < 4 * VLP_COUNT(shapes); i += under_valgrind() ? 5 : 1) {
            const int64_t *s = shapes[i / 4];
            bool ta = i & 1, tb = i & 2;
            product p = {ta,
                         tb,
                         s[0],
                         s[1],
                         s[2],
                         ta ? s[0] : s[2],
                         tb ? s[2] : s[1],
                         s[1] + 3,
                         VLP_R(0.5),
                         (vlp_real)(threads - 2)};
            assert_int_equal(vlp_threads_set(threads), VLP_OK);
            check_product(&p, vlp_gemm);
        }
}

static void test_core_gemm__empty_sizes_and_nan_are_handled(void **state) {
    (void)state;
    vlp_real a[4] = {1, 2, 3, 4}, c[4] = {5, 6, 7, VLP_R(NAN)};
    vlp_gemm(false, false, 0, 2, 2, 1, a, 2, a, 2, 0, c, 2);
    vlp_gemm(false, false, 2, 0, 2, 1, a, 2, a, 0, 0, c, 0);
    vlp_gemm(true, false, 0, 0, 0, 1, NULL, 0, NULL, 0, 0, NULL, 0);
    assert_true(c[0] == 5 && c[2] == 7);
    vlp_gemm(false, false, 1, 3, 0, 1, a, 0, a, 3, 2, c, 3); /* k = 0: beta C */
    assert_true(c[0] == 10 && c[1] == 12 && c[2] == 14);
    vlp_gemm(false, false, 1, 4, 0, 1, a, 0, a, 4, 0, c, 4);
    assert_true(c[0] == 0 && c[3] == 0);
    c[3] = VLP_R(NAN);
    vlp_gemm(false, false, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2); /* beta = 0 overwrites NaN */
    assert_true(c[0] == 7 && c[1] == 10 && c[2] == 15 && c[3] == 22);
    a[1] = VLP_R(NAN);
    vlp_gemm(false, false, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2); /* NaN in stays NaN out */
    assert_true(isnan(c[0]) && isnan(c[3]));
}

static void test_core_gemm__selftest_passes_and_ceilings_are_positive(void **state) {
    (void)state;
    assert_int_equal(vlp_gemm_selftest(), VLP_OK);
    assert_int_equal(vlp_threads_set(2), VLP_OK);
    double rate = 0;
    assert_int_equal(vlp_gemm_peak(64, 0, &rate), VLP_OK);
    assert_true(rate > 0);
    assert_int_equal(vlp_gemm_peak(0, 0, &rate), VLP_ERR_USAGE);
    assert_int_equal(vlp_fma_peak(VLP_ISA_PLAIN, 0, &rate), VLP_OK);
    assert_true(rate > 0);
    assert_int_equal(vlp_memory_peak(0, &rate), VLP_OK);
    assert_true(rate > 0);
    assert_int_equal(vlp_fma_peak(VLP_ISA_COUNT, 0, &rate), VLP_ERR_UNSUPPORTED);
}

static void test_core_gemm__slow_core_types_are_recognised(void **state) {
    (void)state;
    static const struct {
        vlp_cpu_info cpu;
        const char *core, *better;
    } cases[] = {
        {{.sse2 = true}, "Prescott", NULL},
        {{.avx2_fma = true}, "Prescott", "Haswell"},
        {{.avx2_fma = true}, "Zen", NULL},
        {{.avx2_fma = true}, "Sandybridge", "Haswell"},
        {{.avx2_fma = true, .avx512 = true}, "Haswell", "SkylakeX"},
        {{.avx2_fma = true, .avx512 = true}, "SkylakeX", NULL},
        {{.avx2_fma = true, .avx512 = true, .avx512_bf16 = true}, "Prescott", "Cooperlake"},
        {{.avx2_fma = true, .avx512 = true, .avx512_bf16 = true}, "SkylakeX", NULL},
        {{.avx2_fma = true, .avx512 = true, .avx512_bf16 = true}, "Unheard-of", "Cooperlake"},
        {{.neon = true}, "ARMV8", NULL},
    };
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        const char *better = vlp_gemm_better_core(cases[i].core, &cases[i].cpu);
        if (!cases[i].better)
            assert_null(better);
        else
            assert_string_equal(better, cases[i].better);
    }
}

static char self_path[512];

/* Runs this program as a child that calls vlp_gemm_cure and says what came of it. */
static void run_child(const char *environment, char *line, int size) {
    char command[1024];
    snprintf(command, sizeof command, "env -u OPENBLAS_CORETYPE %s '%s' child 'two words'",
             environment, self_path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    line[0] = '\0';
    assert_non_null(fgets(line, size, pipe));
    pclose(pipe);
}

static int child(int argc, char **argv) {
    vlp_status status = vlp_gemm_cure(argc, argv);
    vlp_gemm_about about = vlp_gemm_info();
    const char *core = getenv("OPENBLAS_CORETYPE");
    printf("%s|%s|%s|%s|%s|%s|%s\n", vlp_status_name(status), about.before, about.core, about.by,
           argv[argc - 1], core ? core : "unset", getenv("VLP_GEMM_CURE") ? "guarded" : "clean");
    return 0;
}

static void test_core_gemm__cure_executes_again_at_most_once_a_step(void **state) {
    (void)state;
    char line[256], want[256];
    run_child("", line, sizeof line);
    assert_non_null(strstr(line, "ok|"));
    assert_non_null(strstr(line, "|two words|unset|clean"));
    const char *core = vlp_gemm_info().core;
    if (!vlp_cpu()->avx2_fma || under_valgrind())
        skip(); /* the child sees another processor there */
    /* the user's choice stays, slow or not */
    run_child("OPENBLAS_CORETYPE=Prescott", line, sizeof line);
    assert_string_equal(line, "ok|Prescott|Prescott|user|two words|Prescott|clean\n");
    /* switched off, nothing is chosen or replaced */
    run_child("VLP_GEMM_CURE=off", line, sizeof line);
    assert_non_null(strstr(line, "ok|"));
    assert_non_null(strstr(line, "|library|two words|unset|guarded"));
    run_child("VLP_GEMM_CURE=off OPENBLAS_CORETYPE=Haswell VLP_GEMM_DISTRUST=Haswell", line,
              sizeof line);
    assert_non_null(strstr(line, "|Haswell|user|"));
    assert_null(strstr(line, "ok|"));
    /* distrusted kernels give way to older ones, through one or two executions */
    run_child("VLP_GEMM_DISTRUST=SapphireRapids,Cooperlake,SkylakeX,Zen", line, sizeof line);
    assert_non_null(strstr(line, "|Haswell|vlp"));
    assert_non_null(strstr(line, "|two words|unset|clean"));
    run_child("VLP_GEMM_DISTRUST=SapphireRapids,Cooperlake,SkylakeX,Zen,Haswell", line,
              sizeof line);
    snprintf(want, sizeof want, "ok|%s|Prescott|vlp (safe fallback)|two words|unset|clean\n", core);
    assert_string_equal(line, want);
    /* nothing is left to trust */
    run_child("VLP_GEMM_DISTRUST=SapphireRapids,Cooperlake,SkylakeX,Zen,Haswell,Prescott", line,
              sizeof line);
    assert_non_null(strstr(line, "|Prescott|vlp (safe fallback)|two words|unset|clean"));
    assert_null(strstr(line, "ok|"));
    /* and the user's own distrusted choice is refused, not replaced */
    run_child("OPENBLAS_CORETYPE=Haswell VLP_GEMM_DISTRUST=Haswell", line, sizeof line);
    assert_null(strstr(line, "ok|"));
    assert_non_null(strstr(line, "|Haswell|user|"));
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "child") == 0) return child(argc, argv);
    ssize_t n = readlink("/proc/self/exe", self_path, sizeof self_path - 1);
    if (n <= 0) return 1;
    unsetenv("OPENBLAS_CORETYPE");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_gemm__random_products_match_a_double_loop),
        cmocka_unit_test(test_core_gemm__split_products_match_a_double_loop),
        cmocka_unit_test(test_core_gemm__empty_sizes_and_nan_are_handled),
        cmocka_unit_test(test_core_gemm__selftest_passes_and_ceilings_are_positive),
        cmocka_unit_test(test_core_gemm__slow_core_types_are_recognised),
        cmocka_unit_test(test_core_gemm__cure_executes_again_at_most_once_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
