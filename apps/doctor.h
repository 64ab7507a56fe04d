/* What `vlp doctor` finds out, and what it makes of it. */
#ifndef VLP_APPS_DOCTOR_H
#define VLP_APPS_DOCTOR_H

#include "core/gemm.h"
#include "core/json.h"

enum { DOCTOR_VERDICTS = 12, DOCTOR_VERDICT_BYTES = 400 };

typedef struct {
    int threads, processors;
    double load; /* runnable processes, average of a minute; -1 unknown */
    vlp_gemm_about gemm;
    bool products_right;
    char wrong[256]; /* what the self-test said */
    double gflops;   /* of the kernels in use */
    char alone[32];  /* core type that the library takes by itself, "" unknown */
    double alone_gflops;
    double fma_gflops, memory_gbytes; /* ceilings */
    double memory_total, memory_free; /* bytes; 0 unknown */

    int n_verdicts;
    struct {
        bool good;
        char text[DOCTOR_VERDICT_BYTES];
    } verdicts[DOCTOR_VERDICTS];
} doctor;

/* Measures; takes a few seconds. */
vlp_status doctor_examine(doctor *d);
/* Fills the verdicts: what is well, and what is not with its cure. */
void doctor_judge(doctor *d);

/* The other end of the measurement of the library's own choice: one line "core gflops". */
vlp_status doctor_print_gemm(void);

#endif
