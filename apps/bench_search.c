/* vlp bench search: the k best of N vectors by dot product, with the search that the catalogue
 * uses. */
#include "apps/bench.h"

#include "core/ceiling.h"
#include "core/memory.h"
#include "core/op_profile.h"
#include "datasets/catalogue.h"
#include "train/bench.h"

#include <stdio.h>

typedef struct {
    int64_t rows, dim, queries, top;
} sizes;

static vlp_status read_sizes(const cli_args *args, sizes *s) {
    VLP_TRY(cli_int(args, "--rows", 100000, 1, 1000000000, &s->rows));
    VLP_TRY(cli_int(args, "--dim", 256, 1, 65536, &s->dim));
    VLP_TRY(cli_int(args, "--queries", 20, 1, 1000000, &s->queries));
    return cli_int(args, "--top", 10, 1, 100000, &s->top);
}

static vlp_status fill(vlp_catalogue *c, const sizes *s) {
    *c = (vlp_catalogue){.n = s->rows, .dim = s->dim};
    c->ids = vlp_alloc((size_t)s->rows * sizeof *c->ids);
    c->vectors = vlp_alloc((size_t)s->rows * (size_t)s->dim * sizeof *c->vectors);
    if (!c->ids || !c->vectors) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < s->rows; i++) c->ids[i] = i;
    vlp_bench_noise(c->vectors, s->rows * s->dim, 1);
    return VLP_OK;
}

/* Median milliseconds a query; each query differs. */
static vlp_status measure(const vlp_catalogue *c, const sizes *s, double *ms) {
    float *query = vlp_alloc((size_t)s->dim * sizeof *query);
    vlp_hit *hits = vlp_alloc((size_t)s->top * sizeof *hits);
    double *took = vlp_alloc((size_t)s->queries * sizeof *took);
    vlp_status status = query && hits && took ? VLP_OK : VLP_ERR_MEMORY;
    for (int64_t q = -1; q < s->queries && status == VLP_OK && !cli_stop; q++) {
        int64_t n;
        vlp_bench_noise(query, s->dim, (uint64_t)(q + 3));
        double began = vlp_op_profile_clock();
        status = vlp_catalogue_top(c, query, s->top, hits, &n);
        if (q >= 0) took[q] = 1e3 * (vlp_op_profile_clock() - began);
    }
    if (status == VLP_OK) *ms = vlp_bench_median(took, s->queries);
    vlp_free(query);
    vlp_free(hits);
    vlp_free(took);
    return status;
}

int bench_search(const cli_args *args) {
    sizes s;
    vlp_catalogue catalogue = {0};
    double ms = 0;
    vlp_status status = read_sizes(args, &s);
    if (status == VLP_OK) status = fill(&catalogue, &s);
    if (status == VLP_OK) status = measure(&catalogue, &s, &ms);
    vlp_free(catalogue.ids);
    vlp_free(catalogue.vectors);
    if (status != VLP_OK) return cli_fail(status);
    if (cli_stop) return EXIT_STOPPED;
    double peak, gb_per_s = 1e-6 * (double)s.rows * (double)s.dim * sizeof(float) / ms;
    status = vlp_memory_peak(0.3, &peak);
    if (status != VLP_OK) return cli_fail(status);
    if (cli_has(args, "--json")) {
        vlp_json *json = vlp_json_new_object();
        vlp_json_set_double(json, "ms", ms);
        vlp_json_set_double(json, "gb_per_s", gb_per_s);
        vlp_json_set_double(json, "memory_gb_per_s", peak);
        cli_print_json(json);
        return EXIT_DONE;
    }
    printf(
        "%lld vectors of %lld: %.2f ms a query (median of %lld), %.1f GB/s; memory reads at %.1f "
        "GB/s\n",
        (long long)s.rows, (long long)s.dim, ms, (long long)s.queries, gb_per_s, peak);
    return EXIT_DONE;
}
