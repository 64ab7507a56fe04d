/* The vision-language model: image tower, text tower, fusion stack, projections, temperature and
 * matching head; everything that is used at inference. What exists only to train (MLM and MIM
 * heads) belongs to the objectives.
 *
 *     vlp_model_new(&model, &config);           declares the parameters in model->params
 *     vlp_params_allocate(model->params, ...);  after objectives have declared theirs
 *     vlp_model_load_weights(model, path);      or vlp_params_init
 *
 * A model folder has the Hugging Face layout: config.json, model.safetensors, tokenizer files,
 * preprocessor_config.json. */
#ifndef VLP_FUSION_MODEL_H
#define VLP_FUSION_MODEL_H

#include "core/checkpoint.h"
#include "core/options.h"
#include "fusion/fusion.h"
#include "text/bert.h"
#include "text/clip_text.h"
#include "vision/vit.h"
#include "vision/vit_pool.h"

/* Text meets image in a fusion stack on top of the text tower (ALBEF), or, when the text tower has
 * a context, in its own layers, which read the text a second time (BLIP). */
typedef struct {
    vlp_vit_config vision;
    vlp_vit_pool_config pool;       /* how an image is read */
    vlp_bert_config text;           /* width 0: none (captioning alone), or */
    vlp_clip_text_config clip_text; /* CLIP's; width 0: none */
    vlp_fusion_config fusion;       /* depth 0: no fusion stack */
    vlp_bert_config decoder;        /* writes text; width 0: none */
    bool decoder_shared;            /* all but its self-attention is the text tower's */
    bool decoder_untied;            /* its head has words of its own */
    bool decoder_reads_text; /* it attends to the fused text, a question; else to the image */
    bool answers_questions;  /* it looks at the image and continues a question */
    int64_t bos_id, enc_id, eos_id; /* first token of what is written; of what is fused; last token
                                       of what is written. 0 = the text's own */
    int64_t embedding;              /* E, of the shared space */
    bool projection_bias, text_projection_bias; /* of both; of the text's */
    bool no_image_projection; /* the pooled image lies in the shared space (SigLIP) */
    bool logit_bias;          /* a learned number added to similarities (SigLIP) */
    double logit_bias_init;
    bool plain_temperature; /* what is learnt: the temperature (ALBEF), or logit_scale (CLIP), the
                               logarithm of its inverse */
    char prompt[VLP_OPTION_TEXT_BYTES]; /* what its captions were trained to begin with */
    double logit_scale_init;            /* log of the initial inverse temperature */
    double logit_scale_max;             /* the clamp, also in logarithms */
    double temperature_most;            /* the other clamp of a plain temperature; 0 = none */
    int64_t text_length;                /* L that training used */
} vlp_model_config;

/* What a model has beside its encoders. */
enum {
    VLP_MODEL_SPACE = 1, /* projections into the shared space */
    VLP_MODEL_SCALE = 2, /* the temperature */
    VLP_MODEL_MATCH = 4, /* the matching head, where there is a fusion stack */
    VLP_MODEL_ALL = 7,
};

typedef struct {
    vlp_model_config config;
    vlp_params *params; /* owned */
    vlp_vit vision;
    vlp_vit_pool pool;
    vlp_bert text;
    vlp_clip_text clip_text; /* either of the two */
    vlp_fusion fusion;
    vlp_bert decoder;
    vlp_mlm_head lm;                             /* the decoder's head */
    vlp_dense image_projection, text_projection; /* [E, D] */
    vlp_tensor *logit_scale;                     /* scalar; or NULL and */
    vlp_tensor *temperature;                     /* scalar */
    vlp_tensor *logit_bias;                      /* scalar or NULL */
    vlp_dense match_head;                        /* [2, D]: not a pair, a pair */
} vlp_model;

/* Sizes from config.json; a missing or impossible key is named (`where` is the file). */
vlp_status vlp_model_config_read(vlp_model_config *out, const vlp_json *json, const char *where);
vlp_json *vlp_model_config_write(const vlp_model_config *config);
/* The same for any config.json whose kind is known: ours, ALBEF's, BLIP's or CLIP's. */
vlp_status vlp_model_config_any(vlp_model_config *out, const vlp_json *json, const char *where);

vlp_status vlp_model_new(vlp_model **out, const vlp_model_config *config);
/* The same with some of the parts (VLP_MODEL_...) only. */
vlp_status vlp_model_new_parts(vlp_model **out, const vlp_model_config *config, unsigned parts);
void vlp_model_free(vlp_model *model);

/* Whether text can be fused with an image; whether there is a matching head, too; whether there is
 * a decoder. */
bool vlp_model_can_fuse(const vlp_model *model);
bool vlp_model_can_match(const vlp_model *model);
bool vlp_model_can_write(const vlp_model *model);
/* Whether fusing reads the tokens anew instead of continuing from the text tower's states. */
bool vlp_model_fuses_anew(const vlp_model *model);

/* What a file of weights is, by its names: "BLIP", "CLIP, Hugging Face's names", "BERT"; or NULL.
 */
const char *vlp_model_kind(const vlp_safetensors *file);
/* How a file whose kind is known names the parameters (ours: no table), and which parts it has.
 * With `momentum`, its momentum twin takes the model's names. */
void vlp_model_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                     bool momentum);
unsigned vlp_model_parts(const vlp_safetensors *file);
/* What only the tensors say: which of the configuration's towers and decoders there are. */
void vlp_model_config_complete(vlp_model_config *config, const vlp_safetensors *file);

/* Fills every parameter from a safetensors file by name; a missing or mis-shaped tensor is an
 * error, tensors of training heads ("objective.") are ignored, others unexpected are named. */
vlp_status vlp_model_load_weights(vlp_model *model, const char *path);

/* What a model folder holds, without opening it: config.json, and what the weights add to it. */
vlp_status vlp_model_folder_config(vlp_model_config *out, const char *folder);

/* Opens a model folder for inference: config, parameters without gradients, weights. */
vlp_status vlp_model_open(vlp_model **out, const char *folder);

/* pixels [B, C, H, W] -> tokens [B, 1 + P, D]; tokens [B, L] -> [B, L, D] */
vlp_tensor *vlp_model_image_tokens(vlp_tape *tape, const vlp_model *model, vlp_tensor *pixels);
vlp_tensor *vlp_model_text_tokens(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens);
/* What each sample is read by: a BERT's first token, CLIP's end of text, the image's pool -> [B,
 * D]; projected into the shared space -> [B, E]; and that L2-normalised. `states` are what
 * text_tokens gave for `tokens`; a BERT does not look at those, so they may be NULL. */
vlp_tensor *vlp_model_image_features(vlp_tape *tape, const vlp_model *model, vlp_tensor *pooled);
vlp_tensor *vlp_model_text_features(vlp_tape *tape, const vlp_model *model, vlp_tensor *pooled);
vlp_tensor *vlp_model_text_pooled(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                                  vlp_tensor *states);
vlp_tensor *vlp_model_image_embedding(vlp_tape *tape, const vlp_model *model, vlp_tensor *tokens);
vlp_tensor *vlp_model_text_embedding(vlp_tape *tape, const vlp_model *model,
                                     const vlp_tokens *tokens, vlp_tensor *states);
/* Size of the vocabulary; whether a text's padding matters to it, so that it may not be cut off. */
int64_t vlp_model_vocab(const vlp_model_config *config);
bool vlp_model_reads_padding(const vlp_model_config *config);
/* Cosines of unit rows over the temperature, plus a bias where there is one: [Bi, E], [Bt, E] ->
 * [Bi, Bt]. logit_scale is clamped
 * here; a plain temperature is not: trainers clamp it in place by vlp_model_clamp. */
vlp_tensor *vlp_model_similarity(vlp_tape *tape, const vlp_model *model, vlp_tensor *a,
                                 vlp_tensor *b);
/* 1 / temperature, as similarity multiplies by; the initial one in models without. */
double vlp_model_scale(const vlp_model *model);
void vlp_model_clamp(vlp_model *model);
/* Keys and values of image tokens [Bi, 1 + P, Dv] for every layer that fuses: once for all passes
 * of a step. keys [VLP_MAX_DEPTH] */
void vlp_model_image_keys(vlp_tape *tape, const vlp_model *model, vlp_tensor *images,
                          vlp_tensor **keys);
/* Text b with image image_index[b] (NULL = b) -> [B, L, D]. From the text tower's states `text`,
 * or, where vlp_model_fuses_anew, from the tokens, which begin with enc_id then (text may be NULL).
 */
vlp_tensor *vlp_model_fuse(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                           vlp_tensor *text, vlp_tensor *const *keys, const int32_t *image_index);
/* What the decoder attends to: image tokens or fused text, [Bc, Lc, Dc] -> keys [VLP_MAX_DEPTH].
 * With a shared decoder these are vlp_model_image_keys. */
void vlp_model_decoder_keys(vlp_tape *tape, const vlp_model *model, vlp_tensor *context,
                            vlp_tensor **keys);
/* Logits of the token after each: tokens [B, L] -> [B, L, V]. `input` has context, context_index,
 * context_mask, and for inference a cache; the order is causal. */
vlp_tensor *vlp_model_decode(vlp_tape *tape, const vlp_model *model, const vlp_tokens *tokens,
                             const vlp_stack_input *input);
/* Matching logits of fused states [B, L, D] -> [B, 2] */
vlp_tensor *vlp_model_match(vlp_tape *tape, const vlp_model *model, vlp_tensor *fused);

#endif
