/* "zero-shot classification and retrieval metrics": classes from several prompts each, and recall
 * of captions. */
#include "core/memory.h"
#include "fusion/clip.h"
#include "parity/model.h"
#include "parity/runners.h"

#include <math.h>
#include <string.h>

typedef struct {
    vlp_model *model;
    const vlp_real *pixels;
    const int32_t *labels;
    vlp_tokens classes, captions;
    int64_t images, class_count;
    vlp_tensor *image, *class_rows, *weights, *logits, *pairs; /* of the last pass */
} zeroshot_run;

static const double scale = 100, norm_eps = 1e-12; /* the scale is fixed, not learned */

static vlp_status declare(parity_model *m, zeroshot_run *r) {
    vlp_model_config config;
    VLP_TRY(vlp_model_config_any(&config, m->c->config, "config.json"));
    vlp_model_config_complete(&config, m->c->model);
    VLP_TRY(vlp_model_new_parts(&r->model, &config, vlp_model_parts(m->c->model)));
    vlp_model_names(&m->map, &config, m->c->model, false);
    parity_model_borrow(m, r->model->params);
    return VLP_OK;
}

static vlp_status read_texts(parity_model *m, const char *name, vlp_tokens *out) {
    VLP_TRY(parity_model_dim(m, name, 0, &out->batch));
    VLP_TRY(parity_model_dim(m, name, 1, &out->length));
    return parity_model_ids(m, name, false, &out->ids);
}

static vlp_status read_inputs(parity_model *m, zeroshot_run *r) {
    VLP_TRY(parity_model_reals(m, "image", &r->pixels));
    VLP_TRY(parity_model_dim(m, "image", 0, &r->images));
    VLP_TRY(read_texts(m, "class_text", &r->classes));
    VLP_TRY(read_texts(m, "captions", &r->captions));
    r->class_count = vlp_json_int(m->c->config, "num_classes", 1);
    if (r->class_count < 1 || r->classes.batch % r->class_count != 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "%lld prompts for %lld classes",
                        (long long)r->classes.batch, (long long)r->class_count);
    return parity_model_ids(m, "labels", false, &r->labels);
}

static vlp_tensor *texts(parity_model *m, zeroshot_run *r, const vlp_tokens *tokens) {
    vlp_tensor *x = vlp_model_text_tokens(m->tape, r->model, tokens);
    return vlp_model_text_embedding(m->tape, r->model, tokens, x);
}

static vlp_tensor *build(parity_model *m, void *ctx) {
    zeroshot_run *r = ctx;
    vlp_tensor *pixels = parity_graph_input(m, "image", r->pixels);
    r->image = vlp_model_image_embedding(m->tape, r->model,
                                         vlp_model_image_tokens(m->tape, r->model, pixels));
    vlp_tensor *prompts = texts(m, r, &r->classes);
    if (!prompts || !r->image) return NULL;
    int64_t each = r->classes.batch / r->class_count;
    prompts =
        vlp_reshape(m->tape, prompts, 3, (int64_t[]){r->class_count, each, vlp_col_count(prompts)});
    vlp_tensor *rows = vlp_l2_normalize(m->tape, vlp_mean_rows(m->tape, prompts, NULL), norm_eps);
    r->logits = vlp_scale(m->tape, vlp_linear(m->tape, r->image, rows, NULL, VLP_ACT_NONE), scale);
    r->pairs = vlp_model_similarity(m->tape, r->model, r->image, texts(m, r, &r->captions));
    parity_output(m, r->image, "image_features");
    parity_output(m, vlp_transpose(m->tape, rows), "zeroshot_weights");
    parity_output(m, r->logits, "logits");
    parity_output(m, r->pairs, "retrieval/logits_per_image");
    return vlp_cross_entropy(m->tape, r->logits, r->labels, 0);
}

/* Place of column `wanted` in a row, best first; equal scores keep their order. */
static int64_t rank_of(const vlp_real *row, int64_t n, int64_t stride, int64_t wanted) {
    int64_t rank = 0;
    vlp_real score = row[wanted * stride];
    for (int64_t j = 0; j < n; j++)
        rank += row[j * stride] > score || (row[j * stride] == score && j < wanted);
    return rank;
}

static void expect_accuracy(parity_model *m, const zeroshot_run *r) {
    const vlp_real *logits = vlp_real_data(r->logits);
    int64_t n = r->images, classes = r->class_count;
    double top1 = 0, top5 = 0;
    int32_t best[5 * 1024];
    int64_t kept = classes < 5 ? classes : 5;
    for (int64_t i = 0; i < n && i < 1024; i++) {
        const vlp_real *row = logits + i * classes;
        int64_t rank = rank_of(row, classes, 1, r->labels[i]);
        top1 += rank < 1;
        top5 += rank < 5;
        for (int64_t j = 0; j < classes; j++) {
            int64_t place = rank_of(row, classes, 1, j);
            if (place < kept) best[i * kept + place] = (int32_t)j;
        }
    }
    parity_expect_i32(m->report, "top5", 2, (int64_t[]){n, kept}, best);
    parity_expect_scalar(m->report, "accuracy_top1", top1 / (double)n);
    parity_expect_scalar(m->report, "accuracy_top5", top5 / (double)n);
}

static double median(int64_t *ranks, int64_t n) {
    for (int64_t i = 1; i < n; i++) /* few: by insertion */
        for (int64_t j = i; j > 0 && ranks[j - 1] > ranks[j]; j--) {
            int64_t other = ranks[j];
            ranks[j] = ranks[j - 1];
            ranks[j - 1] = other;
        }
    return 0.5 * (double)(ranks[(n - 1) / 2] + ranks[n / 2]);
}

/* Recall one way: item i belongs to row i (stride 1) or column i (stride n). */
static vlp_status expect_recall(parity_model *m, const zeroshot_run *r, const char *way,
                                bool columns) {
    static const int at[] = {1, 5, 10};
    char name[64];
    int64_t n = r->images, *ranks = vlp_alloc_zero((size_t)n, sizeof *ranks);
    const vlp_real *x = vlp_real_data(r->pairs);
    double sum = 0;
    if (!ranks) return VLP_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        ranks[i] = rank_of(x + (columns ? i : i * n), n, columns ? n : 1, i);
        sum += (double)ranks[i];
    }
    for (size_t k = 0; k < VLP_COUNT(at); k++) {
        double hits = 0;
        for (int64_t i = 0; i < n; i++) hits += ranks[i] < at[k];
        snprintf(name, sizeof name, "retrieval/%s_R@%d", way, at[k]);
        parity_expect_scalar(m->report, name, hits / (double)n);
    }
    snprintf(name, sizeof name, "retrieval/%s_mean_rank", way);
    parity_expect_scalar(m->report, name, sum / (double)n + 1);
    snprintf(name, sizeof name, "retrieval/%s_median_rank", way);
    parity_expect_scalar(m->report, name, floor(median(ranks, n)) + 1);
    vlp_free(ranks);
    return VLP_OK;
}

static vlp_status run(parity_model *m, zeroshot_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    VLP_TRY(parity_model_run(m, build, r));
    expect_accuracy(m, r);
    VLP_TRY(expect_recall(m, r, "image_to_text", false));
    VLP_TRY(expect_recall(m, r, "text_to_image", true));
    return parity_expect_softmax(m, "probs", r->logits);
}

vlp_status parity_run_zeroshot(const parity_case *c, parity_report *report) {
    parity_model m;
    zeroshot_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    parity_model_close(&m);
    vlp_model_free(r.model);
    return status;
}
