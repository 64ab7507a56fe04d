/* A trained model ready for use: images and texts to unit vectors, pairs to matching scores.
 *
 *     vlp_embedder_open(&e, "run/", 32);
 *     vlp_embedder_texts(e, (const char *[]){"a red car"}, 1, vector);     // [1, E] f32
 *     vlp_embedder_free(e);
 *
 * One embedder serves one thread; it uses all threads inside. */
#ifndef VLP_TRAIN_EMBEDDER_H
#define VLP_TRAIN_EMBEDDER_H

#include "core/hash.h"
#include "fusion/model.h"
#include "text/tokenizer.h"
#include "vision/transform.h"

typedef struct vlp_embedder vlp_embedder;

/* Opens a model folder: config.json, model.safetensors, tokenizer, preprocessor_config.json.
 * `batch` images or texts are encoded at a time. */
vlp_status vlp_embedder_open(vlp_embedder **out, const char *folder, int64_t batch);
/* From now on encodes with this precision (VLP_REAL at first) and keeps the weights packed for it,
 * which costs their size once more: for many pictures, or few at a time. */
vlp_status vlp_embedder_speed_up(vlp_embedder *e, vlp_dtype precision);
/* Around a model in training; everything is borrowed. */
vlp_status vlp_embedder_wrap(vlp_embedder **out, const vlp_model *model,
                             const vlp_tokenizer *tokenizer, const vlp_transform *transform,
                             int64_t batch);
void vlp_embedder_free(vlp_embedder *e);

int64_t vlp_embedder_width(const vlp_embedder *e); /* E */
const vlp_transform *vlp_embedder_transform(const vlp_embedder *e);
const vlp_tokenizer *vlp_embedder_tokenizer(const vlp_embedder *e);
const vlp_model *vlp_embedder_model(const vlp_embedder *e);
double vlp_embedder_scale(const vlp_embedder *e); /* 1 / temperature: turns cosines into logits */
/* Identity of weights and preprocessing: vectors of equal ids are comparable. */
vlp_hash vlp_embedder_id(const vlp_embedder *e);

/* pixels [n, 3, S, S] f32, normalised -> out [n, E]; any n */
vlp_status vlp_embedder_pixels(vlp_embedder *e, const float *pixels, int64_t n, float *out);
/* Floating-point operations of the products of the last `batch` that was encoded. */
double vlp_embedder_flops(const vlp_embedder *e);
/* texts [n], UTF-8 -> out [n, E] */
vlp_status vlp_embedder_texts(vlp_embedder *e, const char *const *texts, int64_t n, float *out);
/* Bytes of an image file -> pixels [3, S, S], by the model's preprocessing; `where` names the file
 * in errors. */
vlp_status vlp_embedder_prepare(vlp_embedder *e, const uint8_t *data, size_t len, const char *where,
                                float *pixels);
/* Probability that text and image i belong together, by the matching head: pixels [n, 3, S, S] ->
 * out [n]. VLP_ERR_UNSUPPORTED for a model without a fusion stack. */
vlp_status vlp_embedder_match(vlp_embedder *e, const float *pixels, int64_t n, const char *text,
                              float *out);
/* What texts [n] are ranked by for one image, pixels [3, S, S] -> out [n]: the head's logit of a
 * match (ALBEF, Li et al., 2021, section 5), plus the cosine in models that fuse in the text tower
 * (BLIP, Li et al., 2022). Errors as above. */
vlp_status vlp_embedder_rank(vlp_embedder *e, const float *pixels, const char *const *texts,
                             int64_t n, float *out);

#endif
