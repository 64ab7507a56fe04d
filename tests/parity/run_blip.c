/* BLIP's matching, captioning (official and Hugging Face's names) and question answering, and
 * ALBEF's question answering, which its momentum twin teaches. */
#include "fusion/generate.h"
#include "fusion/rank.h"
#include "objectives/lm.h"
#include "objectives/momentum.h"
#include "parity/model.h"
#include "parity/runners.h"

#include "core/memory.h"

#include <string.h>

static const double smoothing = 0.1; /* of the decoder's targets */

typedef struct {
    vlp_model *model, *twin; /* twin: NULL = none */
    const char *image;       /* the case's name for the pixels */
    const vlp_real *pixels, *weights;
    int64_t batch;
    vlp_tokens text, answer, candidates; /* text: caption or question */
    const int32_t *labels, *counts;      /* counts [B]: answers of each question */
    int32_t *owner;                      /* [answers]: the question of each */
} blip_run;

/* "<prefix>input_ids" and its mask; absent ones give no tokens. */
static vlp_status read_tokens(parity_model *m, const char *prefix, vlp_tokens *out) {
    char ids[64], mask[64];
    snprintf(ids, sizeof ids, "%sinput_ids", prefix);
    snprintf(mask, sizeof mask, "%sattention_mask", prefix);
    *out = (vlp_tokens){0};
    if (!parity_has_input(m->c, ids)) return VLP_OK;
    VLP_TRY(parity_model_dim(m, ids, 0, &out->batch));
    VLP_TRY(parity_model_dim(m, ids, 1, &out->length));
    VLP_TRY(parity_model_ids(m, ids, false, &out->ids));
    return parity_model_mask(m, mask, true, &out->attention_mask);
}

static vlp_status read_owners(parity_model *m, blip_run *r) {
    VLP_TRY(parity_model_reals(m, "answer_weights", &r->weights));
    VLP_TRY(parity_model_ids(m, "n_answers", false, &r->counts));
    r->owner = vlp_alloc_zero((size_t)r->answer.batch, sizeof *r->owner);
    if (!r->owner) return VLP_ERR_MEMORY;
    int64_t at = 0;
    for (int64_t b = 0; b < r->batch; b++)
        for (int32_t i = 0; i < r->counts[b] && at < r->answer.batch; i++)
            r->owner[at++] = (int32_t)b;
    return VLP_OK;
}

static vlp_status read_inputs(parity_model *m, blip_run *r) {
    r->image = parity_has_input(m->c, "pixel_values") ? "pixel_values" : "image";
    VLP_TRY(parity_model_reals(m, r->image, &r->pixels));
    VLP_TRY(parity_model_dim(m, r->image, 0, &r->batch));
    bool question = parity_has_input(m->c, "question_input_ids");
    VLP_TRY(read_tokens(m, question ? "question_" : "", &r->text));
    VLP_TRY(read_tokens(m, "answer_", &r->answer));
    VLP_TRY(read_tokens(m, "cand_", &r->candidates));
    VLP_TRY(parity_model_ids(m, "labels", true, &r->labels));
    if (parity_has_input(m->c, "itm_labels"))
        VLP_TRY(parity_model_ids(m, "itm_labels", false, &r->labels));
    return r->answer.batch > 0 ? read_owners(m, r) : VLP_OK;
}

static vlp_status declare(parity_model *m, blip_run *r) {
    vlp_model_config config;
    VLP_TRY(vlp_model_config_any(&config, m->c->config, "config.json"));
    vlp_model_config_complete(&config, m->c->model);
    VLP_TRY(vlp_model_new_parts(&r->model, &config, vlp_model_parts(m->c->model)));
    vlp_model_names(&m->map, &config, m->c->model, false);
    parity_model_borrow(m, r->model->params);
    bool twin = vlp_json_bool(m->c->config, "distill", false) && config.decoder_reads_text;
    return twin ? vlp_model_new_parts(&r->twin, &config, 0) : VLP_OK;
}

static vlp_tensor *image_tokens(parity_model *m, blip_run *r) {
    vlp_tensor *x =
        vlp_model_image_tokens(m->tape, r->model, parity_graph_input(m, r->image, r->pixels));
    parity_output(m, x, "image_embeds");
    parity_output(m, x, "last_hidden_state");
    return x;
}

/* Both heads on the aligned pairs. The matching head reads [CLS] here: this class alone does not
 * put [ENC] in its place. */
static vlp_tensor *build_matching(parity_model *m, void *ctx) {
    blip_run *r = ctx;
    vlp_tensor *image = image_tokens(m, r), *keys[VLP_MAX_DEPTH];
    vlp_model_image_keys(m->tape, r->model, image, keys);
    vlp_tensor *fused = vlp_bert_forward_with(m->tape, &r->model->text, &r->text,
                                              &(vlp_stack_input){.context = keys});
    vlp_tensor *itm = vlp_model_match(m->tape, r->model, fused);
    vlp_tensor *text = vlp_model_text_tokens(m->tape, r->model, &r->text);
    vlp_tensor *itc =
        vlp_linear(m->tape, vlp_model_image_embedding(m->tape, r->model, image),
                   vlp_model_text_embedding(m->tape, r->model, NULL, text), NULL, VLP_ACT_NONE);
    const vlp_real *cot;
    if (parity_model_reals(m, "cot/itc", &cot) != VLP_OK) return NULL;
    vlp_tensor *loss = vlp_cross_entropy(m->tape, itm, r->labels, 0);
    parity_output(m, itm, "itm_logits");
    parity_output(m, itc, "itc_sim");
    parity_output(m, loss, "loss_itm");
    vlp_tensor *terms[] = {loss, vlp_dot_constant(m->tape, itc, cot)};
    return vlp_weighted_sum(m->tape, terms, (double[]){1, 1}, 2);
}

/* Targets of the text: from the case's labels where it gives them; else the text itself after
 * "prompt_length" tokens. */
static int32_t *caption_targets(parity_model *m, const blip_run *r) {
    int64_t prompt = vlp_json_int(m->c->config, "prompt_length", 0);
    int32_t *targets =
        vlp_tape_alloc(m->tape, (size_t)(r->text.batch * r->text.length) * sizeof *targets);
    if (!targets || vlp_tape_planning(m->tape)) return targets;
    vlp_tokens labels = r->text;
    if (r->labels) labels.ids = r->labels;
    vlp_lm_targets(&labels, prompt, targets);
    return targets;
}

static vlp_tensor *build_caption(parity_model *m, void *ctx) {
    blip_run *r = ctx;
    vlp_tensor *keys[VLP_MAX_DEPTH];
    vlp_model_decoder_keys(m->tape, r->model, image_tokens(m, r), keys);
    vlp_tokens text = vlp_tokens_begin_with(m->tape, &r->text, (int32_t)r->model->config.bos_id);
    vlp_tensor *logits =
        vlp_model_decode(m->tape, r->model, &text, &(vlp_stack_input){.context = keys});
    parity_output(m, logits, "lm_logits");
    parity_output(m, logits, "logits");
    return vlp_cross_entropy(m->tape, logits, caption_targets(m, r), smoothing);
}

/* What the decoder of answers attends to. */
static void question_keys(parity_model *m, blip_run *r, const vlp_model *model, vlp_tensor *image,
                          vlp_tensor **keys) {
    vlp_tensor *image_keys[VLP_MAX_DEPTH], *text = NULL;
    vlp_model_image_keys(m->tape, model, image, image_keys);
    if (!vlp_model_fuses_anew(model)) text = vlp_model_text_tokens(m->tape, model, &r->text);
    vlp_tensor *fused = vlp_model_fuse(m->tape, model, &r->text, text, image_keys, NULL);
    vlp_model_decoder_keys(m->tape, model, fused, keys);
}

static vlp_tensor *answer_logits(parity_model *m, blip_run *r, const vlp_model *model,
                                 vlp_tensor *image, const vlp_tokens *answer) {
    vlp_tensor *keys[VLP_MAX_DEPTH];
    question_keys(m, r, model, image, keys);
    return vlp_model_decode(m->tape, model, answer,
                            &(vlp_stack_input){.context = keys,
                                               .context_index = r->owner,
                                               .context_mask = r->text.attention_mask});
}

/* What the momentum twin would answer, without gradients. */
static const vlp_real *soft_answers(parity_model *m, blip_run *r, const vlp_tokens *answer) {
    if (!r->twin) return NULL;
    const vlp_vit_config *c = &r->twin->config.vision;
    const int64_t shape[] = {r->batch, c->channels, c->image_height, c->image_width};
    vlp_tape_set_grad(m->tape, false);
    vlp_tensor *x = vlp_tape_input(m->tape, VLP_REAL, 4, shape, r->pixels, false);
    x = answer_logits(m, r, r->twin, vlp_model_image_tokens(m->tape, r->twin, x), answer);
    vlp_tape_set_grad(m->tape, true);
    parity_output(m, x, "answer_logits_m");
    return x ? vlp_real_data(x) : NULL;
}

static vlp_tensor *build_answers(parity_model *m, void *ctx) {
    blip_run *r = ctx;
    vlp_tokens answer =
        vlp_tokens_begin_with(m->tape, &r->answer, (int32_t)r->model->config.bos_id);
    const vlp_real *soft = soft_answers(m, r, &answer);
    vlp_tensor *logits = answer_logits(m, r, r->model, image_tokens(m, r), &answer);
    int32_t *targets =
        vlp_tape_alloc(m->tape, (size_t)(answer.batch * answer.length) * sizeof *targets);
    if (!targets) return NULL;
    if (!vlp_tape_planning(m->tape)) vlp_lm_targets(&answer, 0, targets);
    parity_output(m, logits, "answer_logits");
    return vlp_answer_loss(
        m->tape, logits,
        &(vlp_answers){.targets = targets,
                       .weights = r->weights,
                       .divisor = (double)r->batch,
                       .label_smoothing = vlp_rank_defaults(r->model, 1).label_smoothing,
                       .soft = soft,
                       .alpha = vlp_json_double(m->c->config, "alpha", 0)});
}

/* A set of decoding options and the name of its results. */
typedef struct {
    char name[64];
    vlp_generate_options options;
    int32_t prompt[64];
    int64_t prompt_length;
} decoding;

/* The case's prompt without its closing [SEP], begun with bos_id. */
static void read_prompt(const parity_case *c, const vlp_model *model, decoding *d) {
    const vlp_json *prompt = vlp_json_key(c->config, "prompt_input_ids");
    d->prompt[0] = (int32_t)model->config.bos_id;
    d->prompt_length = 1;
    for (size_t i = 1; i + 1 < vlp_json_len(prompt) && i < VLP_COUNT(d->prompt); i++)
        d->prompt[d->prompt_length++] = (int32_t)vlp_json_as_int(vlp_json_at(prompt, i));
}

static vlp_status expect_writings(parity_model *m, const decoding *d, const vlp_writing *w,
                                  int64_t n) {
    char name[128];
    int64_t length = 0, most = d->options.max_length;
    vlp_real *scores = vlp_alloc((size_t)n * sizeof *scores);
    int32_t *ids = vlp_alloc((size_t)(n * most) * sizeof *ids);
    vlp_status status = scores && ids ? VLP_OK : VLP_ERR_MEMORY;
    for (int64_t i = 0; i < n; i++)
        if (w[i].length + 1 > length) length = w[i].length + 1;
    if (length > most) length = most;
    for (int64_t i = 0; status == VLP_OK && i < n; i++) {
        scores[i] = (vlp_real)w[i].score;
        memcpy(ids + i * length, w[i].ids, (size_t)length * sizeof *ids);
    }
    if (status == VLP_OK) {
        snprintf(name, sizeof name, "generate/%s/ids", d->name);
        parity_expect_i32(m->report, name, 2, (int64_t[]){n, length}, ids);
        snprintf(name, sizeof name, "generate/%s/sequences_scores", d->name);
        parity_expect(m->report, name, 1, &n, scores);
    }
    vlp_free(scores);
    vlp_free(ids);
    return status;
}

/* Encodes and writes: the rehearsal and the run alike. Answers are written with the question's
 * padding in sight, as the reference does. */
static vlp_status write_pass(parity_model *m, blip_run *r, vlp_generator *writer, const decoding *d,
                             vlp_writing *writings) {
    vlp_tensor *keys[VLP_MAX_DEPTH];
    vlp_tape_set_grad(m->tape, false);
    vlp_tensor *image = image_tokens(m, r);
    if (r->model->config.decoder_reads_text)
        question_keys(m, r, r->model, image, keys);
    else
        vlp_model_decoder_keys(m->tape, r->model, image, keys);
    vlp_generator_source source = {
        .n = r->batch, .keys = keys, .prompt = d->prompt, .prompt_length = d->prompt_length};
    return vlp_generator_write(writer, m->tape, &source, writings);
}

static vlp_status generate(parity_model *m, blip_run *r, const decoding *d) {
    vlp_generator *writer;
    VLP_TRY(vlp_generator_new(&writer, r->model, r->batch, &d->options));
    vlp_writing *writings = vlp_alloc_zero((size_t)r->batch, sizeof *writings);
    vlp_status status = writings ? VLP_OK : VLP_ERR_MEMORY;
    m->count = 0;
    if (status == VLP_OK) status = vlp_tape_plan(m->tape);
    if (status == VLP_OK) status = write_pass(m, r, writer, d, NULL);
    if (status == VLP_OK) status = vlp_tape_open(m->tape, 0);
    vlp_tape_begin(m->tape, 0, 0);
    m->count = 0;
    if (status == VLP_OK) status = write_pass(m, r, writer, d, writings);
    if (status == VLP_OK) status = expect_writings(m, d, writings, r->batch);
    vlp_free(writings);
    vlp_generator_free(writer);
    return status;
}

/* Every member of the configuration's "generate"; a model of answers has the reference's own. */
static vlp_status generate_all(parity_model *m, blip_run *r) {
    vlp_json *sets = vlp_json_key(m->c->config, "generate");
    decoding d = {.options = vlp_generate_defaults()};
    read_prompt(m->c, r->model, &d);
    if (r->model->config.decoder_reads_text) {
        snprintf(d.name, sizeof d.name, "beam3");
        d.options.min_length = 1;
        d.options.max_length = 10;
        if (parity_wants(m->report, "generate/beam3/ids")) return generate(m, r, &d);
    }
    for (void *it = vlp_json_first(sets); it; it = vlp_json_next(sets, it)) {
        const vlp_json *o = vlp_json_iter_value(it);
        snprintf(d.name, sizeof d.name, "%s", vlp_json_iter_key(it));
        d.options.beams = vlp_json_int(o, "num_beams", 1);
        d.options.min_length = vlp_json_int(o, "min_length", 0);
        d.options.max_length = vlp_json_int(o, "max_length", 20);
        d.options.repetition_penalty = vlp_json_double(o, "repetition_penalty", 1);
        d.options.length_penalty = vlp_json_double(o, "length_penalty", 1);
        d.options.early_stopping = vlp_json_bool(o, "early_stopping", false);
        VLP_TRY(generate(m, r, &d));
    }
    return VLP_OK;
}

static vlp_status rank_pass(parity_model *m, blip_run *r, const vlp_rank_options *o, int32_t *order,
                            double *p) {
    vlp_tensor *keys[VLP_MAX_DEPTH];
    vlp_tape_set_grad(m->tape, false);
    question_keys(m, r, r->model, image_tokens(m, r), keys);
    vlp_tokens candidates =
        vlp_tokens_begin_with(m->tape, &r->candidates, (int32_t)r->model->config.bos_id);
    vlp_rank_source source = {r->batch, keys, r->text.attention_mask, &candidates};
    return vlp_rank_answers(m->tape, r->model, &source, o, order, p);
}

static vlp_status expect_ranking(parity_model *m, const blip_run *r, int64_t k,
                                 const int32_t *order, const double *p) {
    int64_t shape[] = {r->batch, k};
    vlp_real *probs = vlp_alloc((size_t)(r->batch * k) * sizeof *probs);
    int32_t *best = vlp_alloc((size_t)r->batch * sizeof *best);
    bool there = probs && best;
    for (int64_t i = 0; there && i < r->batch * k; i++) probs[i] = (vlp_real)p[i];
    for (int64_t i = 0; there && i < r->batch; i++) best[i] = order[i * k];
    if (there) {
        parity_expect_i32(m->report, "rank/topk_ids", 2, shape, order);
        parity_expect(m->report, "rank/topk_probs", 2, shape, probs);
        parity_expect_i32(m->report, "rank/max_ids", 1, shape, best);
    }
    vlp_free(probs);
    vlp_free(best);
    return there ? VLP_OK : VLP_ERR_MEMORY;
}

static vlp_status rank(parity_model *m, blip_run *r) {
    vlp_rank_options o =
        vlp_rank_defaults(r->model, vlp_json_int(m->c->config, "k_test", r->candidates.batch));
    int32_t *order = vlp_alloc_zero((size_t)(r->batch * o.k), sizeof *order);
    double *p = vlp_alloc_zero((size_t)(r->batch * o.k), sizeof *p);
    vlp_status status = order && p ? VLP_OK : VLP_ERR_MEMORY;
    m->count = 0;
    if (status == VLP_OK) status = vlp_tape_plan(m->tape);
    if (status == VLP_OK) status = rank_pass(m, r, &o, order, p);
    if (status == VLP_OK) status = vlp_tape_open(m->tape, 0);
    vlp_tape_begin(m->tape, 0, 0);
    m->count = 0;
    if (status == VLP_OK) status = rank_pass(m, r, &o, order, p);
    if (status == VLP_OK) status = expect_ranking(m, r, o.k, order, p);
    vlp_free(order);
    vlp_free(p);
    return status;
}

/* The twin of the checkpoint takes the step's average. */
static vlp_status follow(parity_model *m, blip_run *r) {
    vlp_name_map map = {0};
    vlp_model_names(&map, &r->model->config, m->c->model, true);
    VLP_TRY(vlp_params_allocate(r->twin->params, false));
    VLP_TRY(vlp_params_load(r->twin->params, m->c->model, map, "objective."));
    vlp_momentum_follow(r->twin->params, r->model->params,
                        vlp_json_double(m->c->config, "momentum", 0.995));
    return parity_expect_params(m, "after/", &map, r->twin->params, r->twin->params->values);
}

static vlp_status run(parity_model *m, blip_run *r) {
    VLP_TRY(declare(m, r));
    VLP_TRY(read_inputs(m, r));
    if (!vlp_model_can_write(r->model)) return parity_model_run(m, build_matching, r);
    bool answers = r->model->config.decoder_reads_text;
    VLP_TRY(parity_model_load(m, "objective."));
    if (r->twin) VLP_TRY(follow(m, r));
    VLP_TRY(parity_model_compute(m, answers ? build_answers : build_caption, r));
    if (r->candidates.batch > 0) VLP_TRY(rank(m, r));
    return generate_all(m, r);
}

vlp_status parity_run_blip(const parity_case *c, parity_report *report) {
    parity_model m;
    blip_run r = {0};
    vlp_status status = parity_model_open(&m, c, report);
    if (status == VLP_OK) status = run(&m, &r);
    vlp_free(r.owner);
    parity_model_close(&m);
    vlp_model_free(r.model);
    vlp_model_free(r.twin);
    return status;
}
