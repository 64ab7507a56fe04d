#include "apps/commands.h"
#include "apps/doctor.h"

#include "core/product_backend.h"
#include "datasets/db.h"
#include "text/unicode.h"
#include "train/step.h"
#include "vision/image.h"

#include <stdio.h>
#include <stdlib.h>

static const cli_flag flags[] = {
    {"--json", 0, NULL, "everything as one JSON object"},
    {"--gemm", 0, NULL, "only the kernels in use and their GFLOP/s, in a line"},
    {NULL, 0, NULL, NULL},
};

static const cli_pair clashes[] = {{"--json", "--gemm"}, {NULL, NULL}};

static const struct {
    const char *name;
    const char *(*version)(void);
} libraries[] = {
    {"libpng", vlp_png_version},   {"libjpeg-turbo", vlp_jpeg_version},
    {"sqlite", vlp_db_version},    {"utf8proc", vlp_unicode_version},
    {"jansson", vlp_json_version},
};

static void print_cpu(const doctor *d) {
    char features[128], l2[32], l3[32];
    const vlp_cpu_info *cpu = vlp_cpu();
    const char *override = getenv("VLP_ISA");
    printf("processor   %s\n            %s\n            caches a core: L2 %s, L3 %s\n", cpu->model,
           vlp_cpu_features(features, sizeof features), cli_bytes((double)cpu->l2_bytes, l2),
           cli_bytes((double)cpu->l3_bytes, l3));
    printf("kernels     %s of %s%s%s\n", vlp_isa_name(vlp_isa_chosen()),
           vlp_isa_name(vlp_isa_best()), override ? ", VLP_ISA=" : "", override ? override : "");
    printf("threads     %d of %d processors", d->threads, d->processors);
    printf(d->load >= 0 ? ", load %.1f\n" : "\n", d->load);
}

static void print_products(const doctor *d) {
    const vlp_gemm_about *g = &d->gemm;
    printf("products    %s, %s kernels, chosen by %s; %s\n", g->library, g->core, g->by,
           d->products_right ? "self-test passed" : "SELF-TEST FAILED");
    printf("            %.1f GFLOP/s at 1536 (registers: %.1f)\n", d->gflops, d->fma_gflops);
    char fp32[64], bf16[64];
    printf("            layers: fp32 by %s, bf16 by %s%s%s\n",
           vlp_gemm_backend_about(false, fp32, sizeof fp32),
           vlp_gemm_backend_about(true, bf16, sizeof bf16), getenv("VLP_GEMM") ? ", VLP_GEMM=" : "",
           getenv("VLP_GEMM") ? getenv("VLP_GEMM") : "");
    if (d->alone[0])
        printf("            left alone the library takes %s: %.1f GFLOP/s\n", d->alone,
               d->alone_gflops);
}

static void print_words(const doctor *d) {
    char available[32], total[32];
    print_cpu(d);
    print_products(d);
    printf("memory      %s free of %s, read at %.1f GB/s\n", cli_bytes(d->memory_free, available),
           cli_bytes(d->memory_total, total), d->memory_gbytes);
    printf("precision   %s\nMPI         not built in: one machine\nlibraries   ",
           vlp_step_precision_auto());
    for (size_t i = 0; i < VLP_COUNT(libraries); i++)
        printf("%s%s %s", i ? ", " : "", libraries[i].name, libraries[i].version());
    puts("\n");
    for (int i = 0; i < d->n_verdicts; i++)
        printf("%s %s\n", d->verdicts[i].good ? "ok " : "-> ", d->verdicts[i].text);
}

static vlp_json *gemm_json(const doctor *d) {
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "library", d->gemm.library);
    vlp_json_set_string(json, "before", d->gemm.before);
    vlp_json_set_string(json, "core", d->gemm.core);
    vlp_json_set_string(json, "by", d->gemm.by);
    vlp_json_set_bool(json, "right", d->products_right);
    vlp_json_set_double(json, "gflops", d->gflops);
    if (d->alone[0]) {
        vlp_json_set_string(json, "library_core", d->alone);
        vlp_json_set_double(json, "library_gflops", d->alone_gflops);
    }
    vlp_json_set_double(json, "fma_gflops", d->fma_gflops);
    char by[64];
    vlp_json_set_string(json, "fp32_by", vlp_gemm_backend_about(false, by, sizeof by));
    vlp_json_set_string(json, "bf16_by", vlp_gemm_backend_about(true, by, sizeof by));
    return json;
}

static vlp_json *cpu_json(void) {
    char features[128];
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_string(json, "model", vlp_cpu()->model);
    vlp_json_set_string(json, "features", vlp_cpu_features(features, sizeof features));
    vlp_json_set_string(json, "isa", vlp_isa_name(vlp_isa_chosen()));
    vlp_json_set_string(json, "isa_best", vlp_isa_name(vlp_isa_best()));
    if (getenv("VLP_ISA")) vlp_json_set_string(json, "isa_override", getenv("VLP_ISA"));
    vlp_json_set_int(json, "l2_bytes", vlp_cpu()->l2_bytes);
    vlp_json_set_int(json, "l3_bytes", vlp_cpu()->l3_bytes);
    return json;
}

static vlp_json *verdicts_json(const doctor *d) {
    vlp_json *list = vlp_json_new_array();
    for (int i = 0; i < d->n_verdicts; i++) {
        vlp_json *verdict = vlp_json_new_object();
        vlp_json_set_bool(verdict, "ok", d->verdicts[i].good);
        vlp_json_set_string(verdict, "text", d->verdicts[i].text);
        vlp_json_append(list, verdict);
    }
    return list;
}

static void print_json(const doctor *d) {
    vlp_json *json = vlp_json_new_object(), *versions = vlp_json_new_object();
    vlp_json_set(json, "cpu", cpu_json());
    vlp_json_set_int(json, "threads", d->threads);
    vlp_json_set_int(json, "processors", d->processors);
    vlp_json_set_double(json, "load", d->load);
    vlp_json_set(json, "gemm", gemm_json(d));
    vlp_json_set_double(json, "memory_gb_per_s", d->memory_gbytes);
    vlp_json_set_double(json, "memory_bytes", d->memory_total);
    vlp_json_set_double(json, "memory_free_bytes", d->memory_free);
    vlp_json_set_string(json, "precision", vlp_step_precision_auto());
    vlp_json_set_bool(json, "mpi", false);
    for (size_t i = 0; i < VLP_COUNT(libraries); i++)
        vlp_json_set_string(versions, libraries[i].name, libraries[i].version());
    vlp_json_set(json, "libraries", versions);
    vlp_json_set(json, "verdicts", verdicts_json(d));
    cli_print_json(json);
}

static int run(const cli_args *args) {
    static doctor d;
    if (args->n_positional) return cli_usage("doctor: what is \"%s\"?", args->positional[0]);
    vlp_status status = cli_has(args, "--gemm") ? doctor_print_gemm() : doctor_examine(&d);
    if (status != VLP_OK) return cli_fail(status);
    if (cli_has(args, "--gemm")) return EXIT_DONE;
    doctor_judge(&d);
    if (cli_has(args, "--json"))
        print_json(&d);
    else
        print_words(&d);
    return d.products_right ? EXIT_DONE : EXIT_USAGE;
}

const cli_command cmd_doctor = {
    .name = "doctor",
    .summary = "says what this machine has, what vlp makes of it and what to improve",
    .usage = "[--json]",
    .details =
        "Takes a few seconds: products, registers and memory are measured, with the library's\n"
        "own choice of kernels beside the one in use. Lines with -> name a cure. Exit code 2: the\n"
        "kernels compute wrongly. VLP_ISA=plain|avx2|avx512 lowers our own kernels,\n"
        "VLP_GEMM=own|openblas|onednn chooses who multiplies matrices in the layers,\n"
        "OPENBLAS_CORETYPE chooses OpenBLAS's, VLP_GEMM_CURE=off leaves its choice.",
    .examples = "  vlp doctor\n  vlp doctor --json\n",
    .flags = flags,
    .clashes = clashes,
    .run = run,
};
