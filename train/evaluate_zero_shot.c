#include "core/gemm.h"
#include "core/kernels.h"
#include "core/memory.h"
#include "datasets/eval_data.h"
#include "train/evaluate.h"
#include "train/evaluate_images.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* "a photo of a {}." with the class in the hole; a template without one is put in front. */
static vlp_status fill_template(vlp_buf *out, const char *pattern, const char *name) {
    const char *hole = strstr(pattern, "{}");
    vlp_buf_clear(out);
    if (!hole) return vlp_buf_printf(out, "%s %s", pattern, name);
    return vlp_buf_printf(out, "%.*s%s%s", (int)(hole - pattern), pattern, name, hole + 2);
}

/* The filled templates of one class, one after another with their NULs in text. */
static vlp_status fill_templates(vlp_buf *text, const char **texts, const char *const *templates,
                                 int64_t n, const char *name) {
    vlp_buf one = {0};
    vlp_status status = VLP_OK;
    vlp_buf_clear(text);
    for (int64_t t = 0; t < n && status == VLP_OK; t++) {
        status = fill_template(&one, templates[t], name);
        if (status == VLP_OK) status = vlp_buf_append(text, one.data, one.len + 1);
    }
    vlp_buf_free(&one);
    const char *next = text->data;
    for (int64_t t = 0; t < n && status == VLP_OK; t++, next += strlen(next) + 1) texts[t] = next;
    return status;
}

/* vectors [n, E] of the class's texts -> their mean, normalised again */
static void average(const float *vectors, int64_t n, int64_t width, float *out) {
    memset(out, 0, (size_t)width * sizeof *out);
    for (int64_t t = 0; t < n; t++) vlp_kernels_get()->add(width, vectors + t * width, out);
    vlp_kernels_get()->l2_normalize(1, width, out, 1e-12, out, NULL);
}

vlp_status vlp_class_vectors(vlp_embedder *e, const char *const *classes, int64_t n_classes,
                             const char *const *templates, int64_t n_templates, float *out) {
    static const char *const bare[] = {"{}"};
    if (n_templates == 0) templates = bare;
    int64_t width = vlp_embedder_width(e), n = n_templates ? n_templates : 1;
    vlp_buf text = {0};
    const char **texts = vlp_alloc((size_t)n * sizeof *texts);
    float *vectors = vlp_alloc((size_t)(n * width) * sizeof *vectors);
    vlp_status status = texts && vectors ? VLP_OK : VLP_ERR_MEMORY;
    for (int64_t c = 0; status == VLP_OK && c < n_classes; c++) {
        status = fill_templates(&text, texts, templates, n, classes[c]);
        if (status == VLP_OK) status = vlp_embedder_texts(e, texts, n, vectors);
        if (status == VLP_OK) average(vectors, n, width, out + c * width);
    }
    vlp_free(vectors);
    vlp_free(texts);
    vlp_buf_free(&text);
    return status;
}

typedef struct {
    vlp_embedder *e;
    vlp_eval_data data;
    const char *const *classes;
    float *class_vectors, *vectors, *scores;
    vlp_zero_shot *out;
    int64_t n_classes, top1, top5;
} zero_shot;

enum { BATCH = 64 };

int64_t vlp_class_of_label(const char *label, const char *const *classes, int64_t n_classes) {
    if (!label) return -1;
    for (int64_t c = 0; c < n_classes; c++)
        if (strcasecmp(label, classes[c]) == 0) return c;
    char *end;
    long number = strtol(label, &end, 10);
    bool whole = end != label && *end == '\0';
    return whole && number >= 0 && number < n_classes ? number : -1;
}

static void judge(zero_shot *z, const float *scores, int64_t truth) {
    int64_t best = 0, above = 0;
    for (int64_t c = 0; c < z->n_classes; c++) {
        if (scores[c] > scores[best]) best = c;
        above += c != truth && scores[c] >= scores[truth];
    }
    z->out->images++;
    z->top1 += above == 0;
    z->top5 += above < 5;
    z->out->confusion[truth * z->n_classes + best]++;
}

static vlp_status classify_some(const float *pixels, int64_t first, int64_t n, void *user) {
    zero_shot *z = user;
    int64_t width = vlp_embedder_width(z->e);
    VLP_TRY(vlp_embedder_pixels(z->e, pixels, n, z->vectors));
    vlp_gemm(false, true, n, z->n_classes, width, 1, z->vectors, width, z->class_vectors, width, 0,
             z->scores, z->n_classes);
    for (int64_t i = 0; i < n; i++) {
        int64_t truth = vlp_class_of_label(z->data.labels[first + i], z->classes, z->n_classes);
        if (truth >= 0) judge(z, z->scores + i * z->n_classes, truth);
    }
    return VLP_OK;
}

static vlp_status run(zero_shot *z, const vlp_index *index, const vlp_eval_set *set,
                      const char *const *templates, int64_t n_templates) {
    size_t classes = (size_t)z->n_classes, width = (size_t)vlp_embedder_width(z->e);
    VLP_TRY(vlp_eval_data_open(&z->data, index, set->split, set->source, set->max_images));
    z->class_vectors = vlp_alloc(classes * width * sizeof(float));
    z->vectors = vlp_alloc(BATCH * width * sizeof(float));
    z->scores = vlp_alloc(BATCH * classes * sizeof(float));
    z->out->confusion = vlp_alloc_zero(classes * classes, sizeof(int64_t));
    if (!z->class_vectors || !z->vectors || !z->scores || !z->out->confusion) return VLP_ERR_MEMORY;
    VLP_TRY(vlp_class_vectors(z->e, z->classes, z->n_classes, templates, n_templates,
                              z->class_vectors));
    VLP_TRY(vlp_evaluate_images(index, set, vlp_embedder_transform(z->e), z->data.n_images,
                                classify_some, z));
    if (z->out->images == 0)
        return VLP_FAIL(VLP_ERR_NOT_FOUND,
                        "no picture of split %s has a label among the %lld classes (\"%s\", ...)",
                        set->split ? set->split : "(all)", (long long)z->n_classes, z->classes[0]);
    z->out->top1 = (double)z->top1 / (double)z->out->images;
    z->out->top5 = (double)z->top5 / (double)z->out->images;
    return VLP_OK;
}

vlp_status vlp_evaluate_zero_shot(vlp_embedder *e, const vlp_index *index, const vlp_eval_set *set,
                                  const char *const *classes, int64_t n_classes,
                                  const char *const *templates, int64_t n_templates,
                                  vlp_zero_shot *out) {
    *out = (vlp_zero_shot){
        .classes = n_classes, .templates = n_templates, .chance = 1.0 / (double)n_classes};
    zero_shot z = {.e = e, .classes = classes, .n_classes = n_classes, .out = out};
    vlp_status status = run(&z, index, set, templates, n_templates);
    vlp_eval_data_close(&z.data);
    vlp_free(z.class_vectors);
    vlp_free(z.vectors);
    vlp_free(z.scores);
    if (status != VLP_OK) vlp_zero_shot_free(out);
    return status;
}

void vlp_zero_shot_free(vlp_zero_shot *result) {
    vlp_free(result->confusion);
    *result = (vlp_zero_shot){0};
}
