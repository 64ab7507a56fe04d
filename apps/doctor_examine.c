#include "apps/doctor.h"

#include "core/ceiling.h"
#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRODUCT_SIZE = 1536 };
static const double seconds_each = 0.5;

vlp_status doctor_print_gemm(void) {
    double gflops;
    VLP_TRY(vlp_gemm_peak(PRODUCT_SIZE, seconds_each, &gflops));
    printf("%s %.3f\n", vlp_gemm_info().core, gflops);
    return VLP_OK;
}

/* In the child: this program once more, with the cure off and nothing chosen for the library. */
static _Noreturn void run_alone(int out, int threads) {
    char count[16];
    snprintf(count, sizeof count, "%d", threads);
    char *const argv[] = {"vlp", "doctor", "--gemm", "--threads", count, NULL};
    dup2(out, STDOUT_FILENO);
    close(out);
    setenv("VLP_GEMM_CURE", "off", 1);
    unsetenv("OPENBLAS_CORETYPE");
    execv("/proc/self/exe", argv);
    _exit(127);
}

/* Fills alone and alone_gflops; where the system refuses they stay empty. */
static void measure_alone(doctor *d) {
    int ends[2];
    if (pipe(ends) != 0) return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_alone(ends[1], d->threads);
    }
    close(ends[1]);
    FILE *from = child > 0 ? fdopen(ends[0], "r") : NULL;
    if (!from || fscanf(from, "%31s %lf", d->alone, &d->alone_gflops) != 2) d->alone[0] = '\0';
    if (from)
        fclose(from);
    else
        close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
}

static void read_memory(doctor *d) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128];
    while (file && fgets(line, sizeof line, file)) {
        long long kib;
        if (sscanf(line, "MemTotal: %lld", &kib) == 1) d->memory_total = 1024.0 * (double)kib;
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1) d->memory_free = 1024.0 * (double)kib;
    }
    if (file) fclose(file);
}

vlp_status doctor_examine(doctor *d) {
    *d = (doctor){.threads = vlp_threads_get(),
                  .processors = vlp_threads_available(),
                  .gemm = vlp_gemm_info()};
    if (getloadavg(&d->load, 1) != 1) d->load = -1;
    read_memory(d);
    d->products_right = !d->gemm.wrong && vlp_gemm_selftest() == VLP_OK;
    if (!d->products_right)
        snprintf(d->wrong, sizeof d->wrong, "%s",
                 d->gemm.wrong ? "refused when the program started" : vlp_error());
    measure_alone(d);
    VLP_TRY(vlp_gemm_peak(PRODUCT_SIZE, seconds_each, &d->gflops));
    VLP_TRY(vlp_fma_peak(vlp_isa_chosen(), seconds_each, &d->fma_gflops));
    return vlp_memory_peak(seconds_each, &d->memory_gbytes);
}
