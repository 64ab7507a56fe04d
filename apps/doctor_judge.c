#include "apps/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(doctor *d, bool good, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(doctor *d, bool good, const char *format, ...) {
    if (d->n_verdicts == DOCTOR_VERDICTS) return;
    va_list args;
    va_start(args, format);
    vsnprintf(d->verdicts[d->n_verdicts].text, DOCTOR_VERDICT_BYTES, format, args);
    va_end(args);
    d->verdicts[d->n_verdicts++].good = good;
}

static void judge_products(doctor *d) {
    const vlp_gemm_about *g = &d->gemm;
    if (!d->products_right)
        say(d, false,
            "%s's %s kernels compute wrong products (%s): set OPENBLAS_CORETYPE to Haswell or "
            "Prescott, or install a newer OpenBLAS",
            g->library, g->core, d->wrong);
    else if (strcmp(g->by, "vlp") == 0)
        say(d, true,
            "%s takes its %s kernels for this CPU by itself (%.0f GFLOP/s); vlp runs it with %s "
            "(%.0f GFLOP/s) and proved them right",
            g->library, g->before, d->alone_gflops, g->core, d->gflops);
    else if (strcmp(g->by, "user") == 0)
        say(d, true, "OPENBLAS_CORETYPE is yours, and kept: %s kernels", g->core);
    else if (strcmp(g->by, "library") == 0)
        say(d, true, "%s chose its %s kernels by itself; they compute right", g->library, g->core);
    else
        say(d, false,
            "faster kernels computed wrongly, so vlp runs %s with %s; a newer OpenBLAS may be "
            "faster",
            g->library, g->core);
}

static void judge_choice(doctor *d) {
    const vlp_gemm_about *g = &d->gemm;
    const char *better = vlp_gemm_better_core(g->core, vlp_cpu());
    if (strcmp(g->by, "user") == 0 && (better || d->alone_gflops > 1.3 * d->gflops))
        say(d, false, "your OPENBLAS_CORETYPE=%s gives %.0f GFLOP/s where %s is possible: unset it",
            g->core, d->gflops, better ? better : d->alone);
    else if (better && strcmp(g->by, "library") == 0)
        say(d, false,
            "%s has no better kernels than %s to choose from for this CPU (%s would fit): install "
            "the distribution's libopenblas0-pthread, which holds all of them",
            g->library, g->core, better);
    if (d->fma_gflops > 0 && d->gflops < 0.4 * d->fma_gflops)
        say(d, false, "products reach %.0f %% of what the registers can (%.0f of %.0f GFLOP/s)%s",
            100 * d->gflops / d->fma_gflops, d->gflops, d->fma_gflops,
            d->load > 0.5 * d->processors ? ": other programs are using the processors" : "");
}

static void judge_threads(doctor *d) {
    if (d->threads < d->processors)
        say(d, false, "%d of %d processors are used: unset OMP_NUM_THREADS or give --threads %d",
            d->threads, d->processors, d->processors);
    if (d->threads > d->processors)
        say(d, false, "%d threads share %d processors, which is slower than one each: --threads %d",
            d->threads, d->processors, d->processors);
    if (d->load > 1.5 * d->processors)
        say(d, false,
            "the machine is busy (load %.1f on %d processors): measurements and training are slow",
            d->load, d->processors);
}

static void judge_kernels(doctor *d) {
    if (vlp_isa_check() != VLP_OK)
        say(d, false, "%s", vlp_error());
    else if (vlp_isa_chosen() < vlp_isa_best())
        say(d, false, "VLP_ISA=%s holds the kernels below this CPU's %s: unset it",
            vlp_isa_name(vlp_isa_chosen()), vlp_isa_name(vlp_isa_best()));
    if (vlp_cpu()->avx512_bf16 || vlp_cpu()->amx_bf16)
        say(d, true, "this CPU multiplies bfloat16 too: training takes it unless --precision fp32");
}

static void judge_memory(doctor *d) {
    const double gib = 1024.0 * 1024 * 1024;
    if (d->memory_free > 0 && d->memory_free < 2 * gib)
        say(d, false,
            "%.1f GiB of memory are free: --size nano with a small --batch fits; vlp pretrain "
            "--plan says how much a run needs",
            d->memory_free / gib);
}

void doctor_judge(doctor *d) {
    judge_products(d);
    judge_choice(d);
    judge_threads(d);
    judge_kernels(d);
    judge_memory(d);
}
