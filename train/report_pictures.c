/* The report's example pictures with the model's best answers. */
#include "core/gemm.h"
#include "core/memory.h"
#include "datasets/eval_data.h"
#include "datasets/reader.h"
#include "train/decoder.h"
#include "train/html.h"
#include "train/report_internal.h"

enum { ANSWERS = 5, SIDE = 256 };

typedef struct {
    const vlp_report *report;
    vlp_embedder *e;
    vlp_eval_data data;
    vlp_decoder *decoder;
    vlp_reader *reader;
    const char *const *answers; /* classes, or captions */
    int64_t n_answers, n_pictures;
    int64_t positions[VLP_REPORT_PICTURES], ids[VLP_REPORT_PICTURES];
    float *answer_vectors; /* [n_answers, E] */
    float *vectors;        /* [VLP_REPORT_PICTURES, E] */
    float *scores;         /* [VLP_REPORT_PICTURES, n_answers] */
} examples;

static vlp_status prepare(examples *x) {
    int64_t width = vlp_embedder_width(x->e), n = x->data.n_images;
    bool classes = x->report->zero_shot != NULL;
    x->answers = classes ? x->report->classes : x->data.captions;
    x->n_answers = classes                                    ? x->report->zero_shot->classes
                   : x->data.n_captions < VLP_REPORT_CAPTIONS ? x->data.n_captions
                                                              : VLP_REPORT_CAPTIONS;
    x->n_pictures = n < VLP_REPORT_PICTURES ? n : VLP_REPORT_PICTURES;
    /* only pictures whose captions are among the answers can be answered rightly */
    if (!classes && x->n_answers > 0) n = x->data.caption_images[x->n_answers - 1] + 1;
    if (x->n_pictures > n) x->n_pictures = n;
    for (int64_t i = 0; i < x->n_pictures; i++) {
        x->positions[i] = i * n / x->n_pictures;
        x->ids[i] = x->data.image_ids[x->positions[i]];
    }
    x->answer_vectors = vlp_alloc((size_t)(x->n_answers * width) * sizeof(float));
    x->vectors = vlp_alloc((size_t)(VLP_REPORT_PICTURES * width) * sizeof(float));
    x->scores = vlp_alloc((size_t)(VLP_REPORT_PICTURES * x->n_answers) * sizeof(float));
    return x->answer_vectors && x->vectors && x->scores ? VLP_OK : VLP_ERR_MEMORY;
}

static vlp_status score(examples *x) {
    int64_t width = vlp_embedder_width(x->e), n = x->n_pictures, m = x->n_answers;
    VLP_TRY(x->report->zero_shot
                ? vlp_class_vectors(x->e, x->answers, m, x->report->templates,
                                    x->report->zero_shot->templates, x->answer_vectors)
                : vlp_embedder_texts(x->e, x->answers, m, x->answer_vectors));
    VLP_TRY(vlp_decoder_images(x->decoder, x->ids, n));
    VLP_TRY(vlp_embedder_pixels(x->e, vlp_decoder_pixels(x->decoder), n, x->vectors));
    vlp_gemm(false, true, n, m, width, 1, x->vectors, width, x->answer_vectors, width, 0, x->scores,
             m);
    return VLP_OK;
}

static bool is_right(const examples *x, int64_t picture, int64_t answer) {
    const vlp_eval_data *d = &x->data;
    int64_t at = x->positions[picture];
    if (x->report->zero_shot)
        return vlp_class_of_label(d->labels[at], x->answers, x->n_answers) == answer;
    for (int64_t j = 0; j < x->n_answers; j++)
        if (d->caption_images[j] == at && d->caption_groups[j] == d->caption_groups[answer])
            return true;
    return false;
}

static vlp_status answers_of(vlp_buf *page, examples *x, int64_t picture) {
    float *scores = x->scores + picture * x->n_answers;
    VLP_TRY(vlp_buf_puts(page, "<ol>"));
    for (int64_t k = 0; k < ANSWERS && k < x->n_answers; k++) {
        int64_t best = 0;
        for (int64_t j = 1; j < x->n_answers; j++)
            if (scores[j] > scores[best]) best = j;
        VLP_TRY(vlp_buf_puts(page, is_right(x, picture, best) ? "<li class=\"right\">" : "<li>"));
        VLP_TRY(vlp_html_text(page, x->answers[best]));
        VLP_TRY(
            vlp_buf_printf(page, " <span class=\"chance\">%.3f</span></li>", (double)scores[best]));
        scores[best] = -2; /* below every cosine: not chosen again */
    }
    return vlp_buf_puts(page, "</ol>");
}

static const char *truth_of(const examples *x, int64_t picture) {
    const vlp_eval_data *d = &x->data;
    int64_t at = x->positions[picture];
    if (x->report->zero_shot) return d->labels[at] ? d->labels[at] : "";
    for (int64_t j = 0; j < d->n_captions; j++)
        if (d->caption_images[j] == at) return d->captions[j];
    return "";
}

static vlp_status figure(vlp_buf *page, examples *x, int64_t picture, vlp_image *image) {
    vlp_located located;
    VLP_TRY(vlp_reader_locate(x->reader, x->ids[picture], &located));
    vlp_decode_options decode = vlp_decode_defaults;
    decode.min_side = SIDE;
    if (vlp_reader_pixels(x->reader, &located, &decode, 0, image) != VLP_OK) return VLP_OK;
    const char *truth = truth_of(x, picture);
    VLP_TRY(vlp_buf_puts(page, "<figure>"));
    VLP_TRY(vlp_html_picture(page, image, SIDE, truth));
    VLP_TRY(vlp_buf_puts(page, "<figcaption>"));
    VLP_TRY(vlp_html_text(page, truth));
    VLP_TRY(answers_of(page, x, picture));
    return vlp_buf_puts(page, "</figcaption></figure>\n");
}

static vlp_status figures(vlp_buf *page, examples *x) {
    vlp_image image = {0};
    vlp_status status = vlp_buf_printf(
        page,
        "<h2>Pictures, and the best of %lld %s</h2>\n<p class=\"chance\">under each picture what "
        "is true, then the model's answers with their cosines</p>\n<div class=\"gallery\">\n",
        (long long)x->n_answers, x->report->zero_shot ? "classes" : "captions");
    for (int64_t i = 0; i < x->n_pictures && status == VLP_OK; i++)
        status = figure(page, x, i, &image);
    vlp_image_free(&image);
    return status == VLP_OK ? vlp_buf_puts(page, "</div>\n") : status;
}

vlp_status vlp_report_pictures(vlp_buf *page, const vlp_report *report, vlp_embedder *e,
                               const vlp_index *index, const vlp_eval_set *set) {
    examples x = {.report = report, .e = e};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_eval_data_open(&x.data, index, set->split, set->source, set->max_images));
    VLP_TRY_DONE(prepare(&x));
    VLP_TRY_DONE(
        vlp_decoder_open(&x.decoder, vlp_embedder_transform(e), VLP_REPORT_PICTURES, index));
    VLP_TRY_DONE(vlp_reader_open(&x.reader, vlp_index_path(index)));
    VLP_TRY_DONE(score(&x));
    VLP_TRY_DONE(figures(page, &x));
done:
    vlp_reader_free(x.reader);
    vlp_decoder_free(x.decoder);
    vlp_eval_data_close(&x.data);
    vlp_free(x.answer_vectors);
    vlp_free(x.vectors);
    vlp_free(x.scores);
    return status;
}
