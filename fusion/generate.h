/* Writing text with a model's decoder: greedy, beam search, or sampling (top-k, Fan et al., 2018;
 * top-p, Holtzman et al., 2020), by the rules of Hugging Face's generate(), which the published
 * captioning and answering scores were made with.
 *
 *     vlp_generator_new(&w, model, batch, &options);
 *     vlp_tape_plan(tape);
 *       keys = ...; vlp_generator_write(w, tape, &source, NULL);        rehearses one token
 *     vlp_tape_open(tape, 0);
 *     for each batch:
 *       vlp_tape_begin(tape, 0, 0); vlp_tape_set_grad(tape, false);
 *       keys = ...; vlp_generator_write(w, tape, &source, texts);
 *     vlp_generator_free(w);
 *
 * Keys and values of what was written are kept, so each token costs one row. */
#ifndef VLP_FUSION_GENERATE_H
#define VLP_FUSION_GENERATE_H

#include "fusion/model.h"
#include "text/tokenizer.h"

typedef struct {
    int64_t beams;         /* 1 = greedy, or sampling */
    bool sample;           /* draws each token; beams is 1 then */
    int64_t top_k;         /* of the most probable tokens; 0 = all */
    double top_p;          /* of the fewest tokens that have this probability together; 1 = all */
    double temperature;    /* logits are divided by it before sampling */
    int64_t min_length;    /* tokens, with those that are given; no end before */
    int64_t max_length;    /* likewise; text is cut there */
    double length_penalty; /* beams compare log p / length^penalty */
    double repetition_penalty; /* above 1: tokens that are there already become less probable */
    bool early_stopping;       /* a source is done when it has as many ends as beams */
    uint64_t seed;
} vlp_generate_options;

/* Three beams, 5 to 20 tokens: BLIP's captions. */
vlp_generate_options vlp_generate_defaults(void);
/* VLP_ERR_USAGE names an option that is out of range for this model. */
vlp_status vlp_generate_check(const vlp_generate_options *options, const vlp_model *model);

/* What is written: the given tokens, the new ones, the end token if it came, then zeros. */
typedef struct {
    const int32_t *ids; /* [max_length], the writer's until the next call */
    int64_t length;     /* tokens before the end token */
    double score;       /* beam search: log p / length^penalty; else log p of the new tokens */
} vlp_writing;

/* What is attended to, and how every text begins. Borrowed. */
typedef struct {
    int64_t n;                   /* sources, at most those that the writer was made for */
    vlp_tensor *const *keys;     /* of vlp_model_decoder_keys, for n rows */
    const uint8_t *context_mask; /* [n, Lc] or NULL */
    const int32_t *prompt;       /* bos_id first */
    int64_t prompt_length;       /* at least 1, below max_length */
    const uint64_t *numbers;     /* [n] or NULL: keys of the sources' random numbers */
} vlp_generator_source;

typedef struct vlp_generator vlp_generator;

vlp_status vlp_generator_new(vlp_generator **out, const vlp_model *model, int64_t sources,
                             const vlp_generate_options *options);
void vlp_generator_free(vlp_generator *writer);
/* Fills writings [n]. While the tape is planning, one step is built and nothing is written. */
vlp_status vlp_generator_write(vlp_generator *writer, vlp_tape *tape,
                               const vlp_generator_source *source, vlp_writing *writings);

/* Appends the text of a writing's tokens from the one at `from` on. */
vlp_status vlp_writing_text(const vlp_tokenizer *tokenizer, const vlp_writing *writing,
                            int64_t from, vlp_buf *out);

#endif
