/* The one thread pool: OpenMP, with parts that depend only on the size and the thread count, so
 * that the same seed and thread count give the same bits. */
#ifndef VLP_CORE_THREADS_H
#define VLP_CORE_THREADS_H

#include "core/status.h"

#include <stdint.h>

enum { VLP_THREADS_MAX = 1024 };

/* Processors this process may use: scheduler affinity, and the cgroup's CPU quota rounded up. */
int vlp_threads_available(void);

/* The CPU quota of the cgroups that the file `self` (like /proc/self/cgroup) names, below the mount
 * point `root`, versions 1 and 2; INT32_MAX = no limit. */
int vlp_threads_of_cgroup(const char *root, const char *self);

/* Waiting threads are to sleep, not to spin: on a machine that others use too, spinning made a
 * training step ten times slower. OpenMP reads its policy when it is loaded, so this sets
 * OMP_WAIT_POLICY=passive and executes the program once more with the same arguments, unless the
 * user has set a policy. Call it first in main; it returns in the process that is to stay. */
void vlp_threads_settle(char **argv);

/* n > 0 sets the number of threads; n = 0 returns to the default: OMP_NUM_THREADS if it is a
 * positive number, else vlp_threads_available(). VLP_ERR_USAGE outside 0..VLP_THREADS_MAX.
 * Not to be called inside a parallel region. */
vlp_status vlp_threads_set(int n);
int vlp_threads_get(void);

/* How many parts vlp_parallel_for makes of n: min(threads, ceil(n / grain)), 0 for n = 0. Callers
 * that give each part its own accumulator size it by this. */
int vlp_parallel_parts(int64_t n, int64_t grain);

/* body over [0, n) in vlp_parallel_parts(n, grain) contiguous parts; every boundary but the last is
 * a multiple of grain. `thread` is the number of the part, 0 .. parts-1. Inside a parallel region
 * the same parts run one after the other. body must not fail; n < 0 or grain < 1 is a bug. */
typedef void (*vlp_range_body)(int64_t begin, int64_t end, int thread, void *ctx);
void vlp_parallel_for(int64_t n, int64_t grain, vlp_range_body body, void *ctx);

#endif
