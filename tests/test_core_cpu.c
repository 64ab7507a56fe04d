#include "core/cpu.h"
#include "core/file.h"
#include "core/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_core_cpu__features_are_consistent(void **state) {
    (void)state;
    const vlp_cpu_info *cpu = vlp_cpu();
    assert_true(strlen(cpu->model) > 0);
    assert_true(!cpu->avx512 || cpu->avx2_fma);
    assert_true(!cpu->avx512_bf16 || cpu->avx512);
    assert_true(cpu->l1d_bytes >= 0 && cpu->l2_bytes >= 0 && cpu->l3_bytes >= 0);
#if defined(__x86_64__)
    __builtin_cpu_init();
    assert_true(cpu->sse2);
    assert_int_equal(cpu->avx2_fma,
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(cpu->avx512,
                     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#elif defined(__aarch64__)
    assert_true(cpu->neon);
#endif
    char text[256], tiny[6];
    vlp_cpu_features(text, sizeof text);
    assert_int_equal(strstr(text, "avx512") != NULL, cpu->avx512);
    assert_true(strlen(vlp_cpu_features(tiny, sizeof tiny)) < sizeof tiny);
}

static void test_core_cpu__environment_lowers_the_instruction_set(void **state) {
    (void)state;
    unsetenv("VLP_ISA");
    assert_int_equal(vlp_isa_chosen(), vlp_isa_best());
    for (int isa = 0; isa < VLP_ISA_COUNT; isa++) {
        setenv("VLP_ISA", vlp_isa_name((vlp_isa)isa), 1);
        assert_int_equal(vlp_isa_check(), VLP_OK);
        int best = (int)vlp_isa_best();
        assert_int_equal(vlp_isa_chosen(), isa < best ? isa : best);
    }
    setenv("VLP_ISA", "avx9", 1);
    assert_int_equal(vlp_isa_check(), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "avx9"));
    assert_int_equal(vlp_isa_chosen(), vlp_isa_best());
    unsetenv("VLP_ISA");
}

static void test_core_threads__numbers_are_checked(void **state) {
    (void)state;
    assert_true(vlp_threads_available() >= 1);
    assert_int_equal(vlp_threads_set(3), VLP_OK);
    assert_int_equal(vlp_threads_get(), 3);
    assert_int_equal(vlp_threads_set(-1), VLP_ERR_USAGE);
    assert_int_equal(vlp_threads_set(VLP_THREADS_MAX + 1), VLP_ERR_USAGE);
    assert_int_equal(vlp_threads_get(), 3);
    setenv("OMP_NUM_THREADS", "5,2", 1); /* read once, at the first default */
    assert_int_equal(vlp_threads_set(0), VLP_OK);
    assert_int_equal(vlp_threads_get(), 5);
    unsetenv("OMP_NUM_THREADS");
}

typedef struct {
    int seen[1000];
    int64_t begins[64], ends[64];
    int64_t grain;
} coverage;

static void cover(int64_t begin, int64_t end, int thread, void *ctx) {
    coverage *c = ctx;
    for (int64_t i = begin; i < end; i++) c->seen[i]++;
    c->begins[thread] = begin;
    c->ends[thread] = end;
}

static void check_split(int64_t n, int64_t grain, int threads) {
    coverage c = {.grain = grain};
    int parts = vlp_parallel_parts(n, grain);
    assert_true(parts <= threads && (parts > 0 || n == 0));
    vlp_parallel_for(n, grain, cover, &c);
    for (int64_t i = 0; i < n; i++) assert_int_equal(c.seen[i], 1);
    for (int part = 0; part < parts; part++) {
        assert_int_equal(c.begins[part], part ? c.ends[part - 1] : 0);
        assert_int_equal(c.begins[part] % grain, 0);
        assert_true(c.ends[part] > c.begins[part]);
    }
    if (parts) assert_int_equal(c.ends[parts - 1], n);
}

static void test_core_threads__parts_cover_the_range_once_at_grains(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 7, 16, 17, 100, 999, 1000};
    static const int64_t grains[] = {1, 3, 16, 500, 2000};
    for (int threads = 1; threads <= 7; threads++) {
        assert_int_equal(vlp_threads_set(threads), VLP_OK);
        for (size_t i = 0; i < VLP_COUNT(sizes); i++)
            for (size_t j = 0; j < VLP_COUNT(grains); j++)
                check_split(sizes[i], grains[j], threads);
    }
}

static void nest(int64_t begin, int64_t end, int thread, void *ctx) {
    (void)thread;
    coverage *all = ctx;
    for (int64_t i = begin; i < end; i++) vlp_parallel_for(1000, 10, cover, all + i);
}

static void test_core_threads__nested_ranges_keep_their_parts(void **state) {
    (void)state;
    assert_int_equal(vlp_threads_set(3), VLP_OK);
    coverage *all = calloc(4, sizeof *all);
    vlp_parallel_for(3, 1, nest, all);
    vlp_parallel_for(1000, 10, cover, all + 3);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(all[i].seen, all[3].seen, sizeof all[3].seen);
        assert_memory_equal(all[i].ends, all[3].ends, sizeof all[3].ends);
    }
    free(all);
}

static void put(const char *folder, const char *name, const char *text) {
    vlp_buf path = {0};
    assert_int_equal(vlp_path_join(&path, folder, name), VLP_OK);
    char *slash = strrchr(path.data, '/');
    *slash = '\0';
    assert_int_equal(vlp_make_folder(path.data), VLP_OK);
    *slash = '/';
    assert_int_equal(vlp_file_write(path.data, text, strlen(text)), VLP_OK);
    vlp_buf_free(&path);
}

static int cgroup(const char *folder, const char *self) {
    vlp_buf path = {0};
    put(folder, "self", self);
    assert_int_equal(vlp_path_join(&path, folder, "self"), VLP_OK);
    int cpus = vlp_threads_of_cgroup(folder, path.data);
    vlp_buf_free(&path);
    return cpus;
}

static void test_core_threads__cgroup_quotas_are_read(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    char folder[256], command[300];
    snprintf(folder, sizeof folder, "%s/vlp-cgroup-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
    put(folder, "cpu.max", "max 100000\n");
    put(folder, "job/cpu.max", "250000 100000\n");
    put(folder, "job/step/cpu.max", "900000 100000\n");
    put(folder, "cpu/old/cpu.cfs_quota_us", "100000\n");
    put(folder, "cpu/old/cpu.cfs_period_us", "100000\n");
    put(folder, "cpu/free/cpu.cfs_quota_us", "-1\n");
    put(folder, "cpu/free/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cgroup(folder, "0::/\n"), INT32_MAX);
    assert_int_equal(cgroup(folder, "0::/job\n"), 3);
    assert_int_equal(cgroup(folder, "0::/job/step\n"), 3);
    assert_int_equal(cgroup(folder, "0::/absent\n"), INT32_MAX);
    assert_int_equal(cgroup(folder, "5:cpuset:/old\n4:cpu,cpuacct:/old\n"), 1);
    assert_int_equal(cgroup(folder, "4:cpu,cpuacct:/free\n"), INT32_MAX);
    assert_int_equal(cgroup(folder, "nonsense\n"), INT32_MAX);
    assert_int_equal(vlp_threads_of_cgroup(folder, "/nonexistent"), INT32_MAX);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_cpu__features_are_consistent),
        cmocka_unit_test(test_core_cpu__environment_lowers_the_instruction_set),
        cmocka_unit_test(test_core_threads__numbers_are_checked),
        cmocka_unit_test(test_core_threads__parts_cover_the_range_once_at_grains),
        cmocka_unit_test(test_core_threads__nested_ranges_keep_their_parts),
        cmocka_unit_test(test_core_threads__cgroup_quotas_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
