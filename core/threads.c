#include "core/threads.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int chosen; /* 0 = default */
static int default_threads;
static pthread_once_t default_once = PTHREAD_ONCE_INIT;

/* Processors in the affinity mask; machines beyond CPU_SETSIZE need a larger mask. */
static int affinity_cpus(void) {
    for (int cpus = CPU_SETSIZE; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set) break;
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (count > 0) return count;
    }
    return 1;
}

static bool read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    bool ok = fgets(line, size, file) != NULL;
    fclose(file);
    return ok;
}

/* ceil(quota / period), or INT32_MAX for "no limit" */
static int cpus_of_quota(long long quota, long long period) {
    if (quota <= 0 || period <= 0) return INT32_MAX;
    long long cpus = (quota - 1) / period + 1;
    return cpus > INT32_MAX ? INT32_MAX : (int)cpus;
}

/* The quota of one cgroup folder: version 2's cpu.max or version 1's pair of files. */
static int folder_cpus(const char *folder) {
    char path[1200], line[64];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (read_line(path, line, sizeof line))
        return sscanf(line, "%lld %lld", &quota, &period) == 2 ? cpus_of_quota(quota, period)
                                                               : INT32_MAX;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &quota) != 1) return INT32_MAX;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_line(path, line, sizeof line) || sscanf(line, "%lld", &period) != 1) return INT32_MAX;
    return cpus_of_quota(quota, period);
}

/* The least quota of root/path and the folders above it; a limit anywhere up the tree holds. */
static int tree_cpus(const char *root, const char *path) {
    char folder[1100];
    int n = snprintf(folder, sizeof folder, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof folder) return INT32_MAX;
    int least = INT32_MAX;
    for (size_t top = strlen(root);;) {
        int cpus = folder_cpus(folder);
        if (cpus < least) least = cpus;
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < top) return least;
        *slash = '\0';
    }
}

int vlp_threads_of_cgroup(const char *root, const char *self) {
    FILE *file = fopen(self, "re");
    if (!file) return INT32_MAX;
    char line[1024], cpu_root[512];
    snprintf(cpu_root, sizeof cpu_root, "%s/cpu", root);
    int least = INT32_MAX;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        const char *colon = strchr(line, ':');
        const char *path = colon ? strchr(colon + 1, ':') : NULL;
        if (!path) continue;
        bool second = path == colon + 1;
        bool first = !second && strstr(colon, "cpu") && !strstr(colon, "cpuset");
        int cpus = second || first ? tree_cpus(second ? root : cpu_root, path + 1) : INT32_MAX;
        if (cpus < least) least = cpus;
    }
    fclose(file);
    return least;
}

int vlp_threads_available(void) {
    int cpus = affinity_cpus();
    int quota = vlp_threads_of_cgroup("/sys/fs/cgroup", "/proc/self/cgroup");
    int least = cpus < quota ? cpus : quota;
    return least < VLP_THREADS_MAX ? least : VLP_THREADS_MAX;
}

static void find_default(void) {
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 0;
    default_threads = n > 0 && n <= VLP_THREADS_MAX ? (int)n : vlp_threads_available();
}

vlp_status vlp_threads_set(int n) {
    if (n < 0 || n > VLP_THREADS_MAX)
        return VLP_FAIL(VLP_ERR_USAGE, "%d threads: use 1 to %d, or 0 for the default", n,
                        (int)VLP_THREADS_MAX);
    atomic_store(&chosen, n);
    return VLP_OK;
}

int vlp_threads_get(void) {
    int n = atomic_load(&chosen);
    if (n > 0) return n;
    pthread_once(&default_once, find_default);
    return default_threads;
}

int vlp_parallel_parts(int64_t n, int64_t grain) {
    VLP_ASSERT(n >= 0 && grain >= 1, "range of %lld in grains of %lld", (long long)n,
               (long long)grain);
    int64_t chunks = n / grain + (n % grain != 0), threads = vlp_threads_get();
    return (int)(chunks < threads ? chunks : threads);
}

typedef struct {
    int64_t n, grain, each, extra; /* the first `extra` parts have one more chunk than `each` */
    vlp_range_body body;
    void *ctx;
} split;

static void run_part(const split *s, int part) {
    int64_t first = part * s->each + (part < s->extra ? part : s->extra);
    int64_t begin = first * s->grain, end = (first + s->each + (part < s->extra)) * s->grain;
    s->body(begin, end < s->n ? end : s->n, part, s->ctx);
}

/* The team always has all threads, though few parts leave some idle: libgomp allocates a new team
 * whenever the size changes, and a warm step must not allocate. */
void vlp_parallel_for(int64_t n, int64_t grain, vlp_range_body body, void *ctx) {
    int parts = vlp_parallel_parts(n, grain);
    if (parts == 0) return;
    int64_t chunks = n / grain + (n % grain != 0);
    split s = {n, grain, chunks / parts, chunks % parts, body, ctx};
    if (parts == 1 || omp_in_parallel()) {
        for (int part = 0; part < parts; part++) run_part(&s, part);
        return;
    }
#pragma omp parallel num_threads(vlp_threads_get())
    for (int part = omp_get_thread_num(); part < parts; part += omp_get_num_threads())
        run_part(&s, part);
}

/* Some tens of microseconds: as long as the parts between two parallel loops of a step usually
 * take. Sleeping at once, waking up cost a small model a fifth of its speed. */
#define SPIN_COUNT "3000"

void vlp_threads_settle(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT")) return;
    if (setenv("GOMP_SPINCOUNT", SPIN_COUNT, 1) != 0) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 1) == 0) execv("/proc/self/exe", argv);
}
