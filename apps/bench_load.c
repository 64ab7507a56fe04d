/* vlp bench load: how fast an index's images become batches, beside bare decoding. */
#include "apps/bench.h"
#include "apps/open_index.h"

#include "core/memory.h"
#include "core/op_profile.h"
#include "core/threads.h"
#include "datasets/loader.h"
#include "datasets/reader.h"

#include <stdio.h>

enum { DEFAULT_BATCH = 64, DECODED_FILES = 64 };

/* What a picture's way into a batch consists of, and decoding at full size beside it. */
typedef enum { READ, DECODE, CROP, BARE, PARTS } part;
static const char *const part_names[] = {
    [READ] = "reading", [DECODE] = "decoding", [CROP] = "cropping and normalising"};

typedef struct {
    int64_t image_size, batch;
    double seconds;
    double rate;        /* images/s through the loader */
    double decode;      /* images/s of one core that only decodes, full size; 0 = unknown */
    double part[PARTS]; /* seconds, over `taken` pictures on one core */
    int64_t taken;
    int threads;
} load;

typedef struct {
    vlp_image image;
    vlp_transform_scratch scratch;
    vlp_buf data;
    float *out;
} workspace;

static vlp_status loader_rate(const cli_args *args, const vlp_index *index, load *l) {
    vlp_transform transform = vlp_transform_defaults((int)l->image_size);
    vlp_loader_options options = {.rows = VLP_ROWS_IMAGES,
                                  .split = cli_text(args, "--split", NULL),
                                  .train = true,
                                  .batch = (int)l->batch,
                                  .transform = &transform,
                                  .threads = l->threads};
    vlp_loader *loader;
    VLP_TRY(vlp_loader_open(&loader, index, &options));
    vlp_status status = VLP_OK;
    int64_t done = 0;
    double start = 0, took = 0;
    for (int64_t i = 0; status == VLP_OK && !cli_stop && (i < 2 || took < l->seconds); i++) {
        const vlp_batch *batch;
        status = vlp_loader_next(loader, &batch);
        if (status != VLP_OK) break;
        if (i == 0) start = vlp_op_profile_clock(); /* the first batch starts threads and files */
        if (i > 0) done += batch->count;
        vlp_loader_release(loader);
        took = vlp_op_profile_clock() - start;
        cli_progress("%lld images, %.1f a second", (long long)done,
                     took > 0 ? (double)done / took : 0);
    }
    l->rate = took > 0 ? (double)done / took : 0;
    vlp_loader_free(loader);
    return status;
}

/* One picture as the loader takes it, each part timed, and once more decoded in full. */
static vlp_status take_apart(vlp_reader *reader, int64_t id, const vlp_transform *transform,
                             workspace *w, load *l) {
    vlp_located located;
    vlp_rng rng = vlp_rng_at(1, VLP_RNG_AUGMENT, 0, (uint64_t)id);
    vlp_decode_options scaled = vlp_transform_decode_options(transform, true);
    double at[PARTS + 1] = {vlp_op_profile_clock()};
    VLP_TRY(vlp_reader_locate(reader, id, &located));
    if (located.stored == VLP_STORED_GREY) return VLP_ERR_UNSUPPORTED;
    VLP_TRY(vlp_reader_bytes(reader, &located, &w->data));
    at[1] = vlp_op_profile_clock();
    VLP_TRY(vlp_image_decode(&w->image, (const uint8_t *)w->data.data, w->data.len, &scaled));
    at[2] = vlp_op_profile_clock();
    VLP_TRY(vlp_transform_apply(transform, &w->image, &rng, &w->scratch, w->out));
    at[3] = vlp_op_profile_clock();
    VLP_TRY(vlp_image_decode(&w->image, (const uint8_t *)w->data.data, w->data.len, NULL));
    at[4] = vlp_op_profile_clock();
    for (int i = 0; i < PARTS; i++) l->part[i] += at[i + 1] - at[i];
    l->taken++;
    return VLP_OK;
}

/* One core, files evenly spread over the index; raw rows (IDX) cannot be decoded alone. */
static vlp_status decode_rate(const cli_args *args, const vlp_index *index, load *l) {
    vlp_rows rows;
    vlp_reader *reader;
    vlp_transform transform = vlp_transform_defaults((int)l->image_size);
    workspace w = {.out = vlp_alloc(3 * (size_t)(l->image_size * l->image_size) * sizeof *w.out)};
    if (!w.out) return VLP_ERR_MEMORY;
    vlp_status status = vlp_reader_open(&reader, vlp_index_path(index));
    if (status == VLP_OK)
        status =
            vlp_rows_open(&rows, index, VLP_ROWS_IMAGES, cli_text(args, "--split", NULL), NULL);
    if (status == VLP_OK) {
        int64_t files = rows.count < DECODED_FILES ? rows.count : DECODED_FILES;
        double began = vlp_op_profile_clock();
        for (int64_t i = 0; i < files && !cli_stop; i++) {
            if (vlp_op_profile_clock() - began > l->seconds && l->taken > 0) break;
            take_apart(reader, rows.ids[i * (rows.count / files)], &transform, &w, l);
        }
        vlp_rows_close(&rows);
    }
    l->decode = l->part[BARE] > 0 ? (double)l->taken / l->part[BARE] : 0;
    vlp_reader_free(reader);
    vlp_image_free(&w.image);
    vlp_transform_scratch_free(&w.scratch);
    vlp_buf_free(&w.data);
    vlp_free(w.out);
    return status;
}

static vlp_status measure(const cli_args *args, load *l) {
    vlp_index *index;
    int64_t bad;
    VLP_TRY(cli_open_verified(&index, args->positional[1], NULL, &bad));
    vlp_status status = loader_rate(args, index, l);
    if (status == VLP_OK) status = decode_rate(args, index, l);
    vlp_index_free(index);
    return status;
}

static double share(const load *l, part which) {
    double sum = l->part[READ] + l->part[DECODE] + l->part[CROP];
    return sum > 0 ? l->part[which] / sum : 0;
}

static void print_words(const load *l) {
    printf("%.1f images/s of %lld pixels with %d threads: %.1f a thread\n", l->rate,
           (long long)l->image_size, l->threads, l->rate / l->threads);
    if (l->taken == 0) return;
    printf(
        "bare decoding at full size: %.1f images/s a core; a thread of the loader: %.0f %% of it\n",
        l->decode, 100 * l->rate / l->threads / l->decode);
    double each = (l->part[READ] + l->part[DECODE] + l->part[CROP]) / (double)l->taken;
    printf("a picture takes %.2f ms of one core:", 1e3 * each);
    for (part p = READ; p < BARE; p++)
        printf("%s %.0f %% %s", p ? "," : "", 100 * share(l, p), part_names[p]);
    putchar('\n');
}

static void print(const cli_args *args, const load *l) {
    if (!cli_has(args, "--json")) {
        print_words(l);
        return;
    }
    vlp_json *json = vlp_json_new_object();
    vlp_json_set_double(json, "images_per_s", l->rate);
    vlp_json_set_double(json, "images_per_s_a_thread", l->rate / l->threads);
    if (l->taken > 0) {
        vlp_json_set_double(json, "decode_images_per_s_a_core", l->decode);
        vlp_json *shares = vlp_json_new_object();
        for (part p = READ; p < BARE; p++) vlp_json_set_double(shares, part_names[p], share(l, p));
        vlp_json_set(json, "shares", shares);
    }
    vlp_json_set_int(json, "image_size", l->image_size);
    vlp_json_set_int(json, "threads", l->threads);
    cli_print_json(json);
}

int bench_load(const cli_args *args) {
    if (args->n_positional < 2)
        return cli_usage("bench load needs an index: vlp bench load pairs.db");
    load l = {.threads = vlp_threads_get()};
    vlp_status status = cli_int(args, "--batch", DEFAULT_BATCH, 1, 65536, &l.batch);
    if (status == VLP_OK) status = cli_int(args, "--image-size", 224, 8, 4096, &l.image_size);
    if (status == VLP_OK) status = cli_double(args, "--seconds", 3, 0.01, 1e6, &l.seconds);
    if (status == VLP_OK) status = measure(args, &l);
    if (status != VLP_OK) return cli_fail(status);
    cli_progress_end();
    if (cli_stop) return EXIT_STOPPED;
    print(args, &l);
    return EXIT_DONE;
}
