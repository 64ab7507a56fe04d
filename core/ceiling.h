/* What this machine can reach at best, measured: the numbers that a benchmark stands beside. Each
 * call takes about `seconds` and uses vlp_threads_get() threads. */
#ifndef VLP_CORE_CEILING_H
#define VLP_CORE_CEILING_H

#include "core/cpu.h"
#include "core/status.h"

/* The best GFLOP/s of vlp_gemm at size x size x size (1536 is near the peak). */
vlp_status vlp_gemm_peak(int size, double seconds, double *gflops);

/* The best GB/s of reading a block four times the last-level cache (at least 256 MB). */
vlp_status vlp_memory_peak(double seconds, double *gbytes);

/* GFLOP/s of multiply-adds between registers, all threads. VLP_ERR_UNSUPPORTED where the CPU lacks
 * the set. */
vlp_status vlp_fma_peak(vlp_isa isa, double seconds, double *gflops);

/* GFLOP/s of products of bfloat16, all threads: of pairs between registers (AVX512-BF16), or, on a
 * CPU with AMX in a build with oneDNN, of products that the second-level cache holds, which it
 * computes by tiles. *kind says which: "pairs", "tiles". VLP_ERR_UNSUPPORTED without either, or
 * where VLP_ISA forbids them. */
vlp_status vlp_bf16_peak(double seconds, double *gflops, const char **kind);

#endif
