/* Which of OpenBLAS's kernels run: chosen, changed by executing once more, and proved. */
#include "core/cpu.h"
#include "core/gemm.h"
#include "core/gemm_openblas.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* How the process that executes itself tells its successor: "step:core type before". */
#define GUARD "VLP_GEMM_CURE"

enum { STEP_NONE, STEP_FASTER, STEP_SAFE, STEP_OFF };

static vlp_gemm_about about = {.by = "library"};

/* What a core type needs of the CPU, for a float product: 3 = AVX-512, 2 = AVX2 and FMA, 1 = AVX.
 * SkylakeX and Cooperlake differ in bfloat16 products only. Names not here rank 0. */
static const struct {
    const char *core;
    int rank;
} ranks[] = {
    {"SapphireRapids", 3}, {"Cooperlake", 3}, {"SkylakeX", 3},
    {"Haswell", 2},        {"Zen", 2},        {"Excavator", 2},
    {"Sandybridge", 1},    {"Bulldozer", 1},  {"Piledriver", 1},
    {"Steamroller", 1},
};

static int rank_of(const char *core) {
    for (size_t i = 0; i < VLP_COUNT(ranks); i++)
        if (strcasecmp(core, ranks[i].core) == 0) return ranks[i].rank;
    return 0;
}

const char *vlp_gemm_better_core(const char *core, const vlp_cpu_info *cpu) {
    const char *want = cpu->avx512_bf16 ? "Cooperlake"
                       : cpu->avx512    ? "SkylakeX"
                       : cpu->avx2_fma  ? "Haswell"
                                        : NULL;
    return want && rank_of(core) < rank_of(want) ? want : NULL;
}

/* A core type that older kernels than `core` serve; NULL at the end. */
static const char *safer_core(const char *core) {
    if (rank_of(core) == 3) return "Haswell";
    return rank_of(core) > 0 ? "Prescott" : NULL;
}

static bool can_choose(void) {
#if defined(__x86_64__)
    return strstr(vlp_openblas_config(), "DYNAMIC_ARCH") != NULL;
#else
    return false;
#endif
}

/* Returns only if the system refuses: then the kernels stay as they are. */
static void execute_again(char **argv, int step, const char *core) {
    char guard[64];
    snprintf(guard, sizeof guard, "%d:%s", step, about.before);
    if (setenv(GUARD, guard, 1) != 0 || setenv("OPENBLAS_CORETYPE", core, 1) != 0) return;
    execv("/proc/self/exe", argv);
    unsetenv(GUARD);
    unsetenv("OPENBLAS_CORETYPE");
}

/* Learns what the predecessor did and removes its traces, so that children are not misled. */
static int read_guard(void) {
    const char *guard = getenv(GUARD);
    if (!guard) return STEP_NONE;
    if (strcmp(guard, "off") == 0) return STEP_OFF;
    int step = guard[0] == '0' + STEP_SAFE ? STEP_SAFE : STEP_FASTER;
    const char *colon = strchr(guard, ':');
    if (colon) snprintf(about.before, sizeof about.before, "%s", colon + 1);
    unsetenv(GUARD);
    unsetenv("OPENBLAS_CORETYPE");
    about.by = step == STEP_SAFE ? "vlp (safe fallback)" : "vlp";
    return step;
}

static void fill_about(void) {
    if (about.core[0]) return;
    snprintf(about.core, sizeof about.core, "%s", vlp_openblas_core());
    if (!about.before[0]) memcpy(about.before, about.core, sizeof about.before);
    const char *config = vlp_openblas_config();
    const char *space = strchr(config, ' ');
    int length = space ? (int)(space - config + 1 + (int)strcspn(space + 1, " ")) : 8;
    snprintf(about.library, sizeof about.library, "%.*s", length, config);
}

vlp_gemm_about vlp_gemm_info(void) {
    fill_about();
    return about;
}

/* VLP_GEMM_DISTRUST="SkylakeX,Cooperlake": core types to be treated as if they computed wrongly */
static vlp_status prove(void) {
    const char *distrust = getenv("VLP_GEMM_DISTRUST");
    for (const char *at = distrust; at && *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        size_t length = strcspn(at, ",");
        if (length == strlen(about.core) && strncmp(at, about.core, length) == 0)
            return VLP_FAIL(VLP_ERR_NUMERIC, "VLP_GEMM_DISTRUST names it");
    }
    return vlp_gemm_selftest();
}

vlp_status vlp_gemm_cure(int argc, char **argv) {
    static bool done;
    if (done || argc < 1) return VLP_OK;
    done = true;
    int step = read_guard();
    fill_about();
    bool users = (step == STEP_NONE || step == STEP_OFF) && getenv("OPENBLAS_CORETYPE") != NULL;
    if (users) about.by = "user";
    bool may = can_choose() && !users && step != STEP_OFF;
    const char *better = vlp_gemm_better_core(about.core, vlp_cpu());
    if (may && step == STEP_NONE && better) execute_again(argv, STEP_FASTER, better);
    vlp_status status = prove();
    if (status == VLP_OK) return VLP_OK;
    const char *safe = safer_core(about.core);
    if (may && safe) execute_again(argv, STEP_SAFE, safe);
    about.wrong = true;
    return vlp_fail_in(status,
                       "OpenBLAS's %s kernels compute wrong products on this CPU; set "
                       "OPENBLAS_CORETYPE to another core type (Haswell, Prescott) or install a "
                       "newer OpenBLAS",
                       about.core);
}

/* Small whole numbers: every sum is exact, so the kernels must agree to the last bit. */
static void fill_whole(vlp_real *x, int64_t n, int64_t step) {
    for (int64_t i = 0; i < n; i++) x[i] = (vlp_real)(i * step % 17 - 8);
}

static bool agrees(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const vlp_real *a,
                   const vlp_real *b, vlp_real *c) {
    fill_whole(c, m * n, 3);
    vlp_gemm_serial(ta, tb, m, n, k, 2, a, ta ? m : k, b, tb ? k : n, -1, c, n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            vlp_real sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += a[ta ? l * m + i : i * k + l] * b[tb ? j * k + l : l * n + j];
            vlp_real old = (vlp_real)((i * n + j) * 3 % 17 - 8);
            if (c[i * n + j] != 2 * sum - old) return false; /* NaN is unequal too */
        }
    return true;
}

vlp_status vlp_gemm_selftest(void) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},    {17, 1, 33},  {1, 65, 19},
                                        {33, 47, 65}, {64, 64, 64}, {97, 130, 61}};
    enum { LARGEST = 130 * 97 };
    vlp_real *x = vlp_alloc(3 * LARGEST * sizeof *x);
    if (!x) return VLP_ERR_MEMORY;
    fill_whole(x, LARGEST, 7);
    fill_whole(x + LARGEST, LARGEST, 11);
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < 4 * VLP_COUNT(shapes) && status == VLP_OK; i++) {
        const int64_t *s = shapes[i / 4];
        bool ta = i & 1, tb = i & 2;
        if (!agrees(ta, tb, s[0], s[1], s[2], x, x + LARGEST, x + 2 * LARGEST))
            status = VLP_FAIL(VLP_ERR_NUMERIC, "[%d,%d] x [%d,%d]%s%s is wrong", (int)s[0],
                              (int)s[2], (int)s[2], (int)s[1], ta ? ", first transposed" : "",
                              tb ? ", second transposed" : "");
    }
    vlp_free(x);
    return status;
}
