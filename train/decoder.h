/* Pictures decoded and prepared by all threads: files by path, or images of an index by id.
 *
 *     vlp_decoder_open(&d, vlp_embedder_transform(e), 64, NULL);
 *     vlp_decoder_files(d, paths, 64);
 *     ... vlp_decoder_reason(d, i) or row i of vlp_decoder_pixels(d) ...
 *     vlp_decoder_free(d); */
#ifndef VLP_TRAIN_DECODER_H
#define VLP_TRAIN_DECODER_H

#include "datasets/index.h"
#include "vision/transform.h"

typedef struct vlp_decoder vlp_decoder;

/* Room for `batch` pictures at a time. index NULL = only files; otherwise each thread gets its own
 * connection to it. transform is copied. */
vlp_status vlp_decoder_open(vlp_decoder **out, const vlp_transform *transform, int64_t batch,
                            const vlp_index *index);
void vlp_decoder_free(vlp_decoder *decoder);

/* n <= batch pictures. A picture that cannot be decoded is no error: its pixels are zero and its
 * reason is kept. What the system refuses to all (memory) is an error. */
vlp_status vlp_decoder_files(vlp_decoder *decoder, const char *const *paths, int64_t n);
vlp_status vlp_decoder_images(vlp_decoder *decoder, const int64_t *ids, int64_t n);

/* Of the last call: [n, 3, S, S]; why picture i has no pixels, or NULL when it has; its path. */
const float *vlp_decoder_pixels(const vlp_decoder *decoder);
const char *vlp_decoder_reason(const vlp_decoder *decoder, int64_t i);
const char *vlp_decoder_path(const vlp_decoder *decoder, int64_t i);

#endif
