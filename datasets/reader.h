/* One thread's way from a row id to pixels and text: its own connection and working memory, reused
 * from row to row. */
#ifndef VLP_DATASETS_READER_H
#define VLP_DATASETS_READER_H

#include "core/memory.h"
#include "core/rng.h"
#include "datasets/index.h"
#include "vision/image.h"

typedef struct vlp_reader vlp_reader;

typedef struct {
    int64_t id, group, offset, length;
    vlp_stored stored;
    int width, height;
    vlp_hash hash;
    const char *path; /* borrowed until the next look-up */
} vlp_located;

typedef struct {
    int64_t id, image_id, group; /* group: the normalised text's hash */
    const char *text;            /* borrowed until the next look-up; NUL-terminated */
    size_t len;
    const char *answer; /* of a question, likewise; else NULL */
    size_t answer_len;
} vlp_caption_row;

vlp_status vlp_reader_open(vlp_reader **out, const char *index_path);
void vlp_reader_free(vlp_reader *reader);

vlp_status vlp_reader_locate(vlp_reader *reader, int64_t image_id, vlp_located *out);

/* Replaces out by the image's bytes as they are stored. */
vlp_status vlp_reader_bytes(vlp_reader *reader, const vlp_located *located, vlp_buf *out);

/* Decodes into out. short_side > 0: a larger image is box-filtered down until its shorter side is
 * that, so that what training sees is the same with and without a cache. */
vlp_status vlp_reader_pixels(vlp_reader *reader, const vlp_located *located,
                             const vlp_decode_options *decode, int short_side, vlp_image *out);

vlp_status vlp_reader_caption(vlp_reader *reader, int64_t caption_id, vlp_caption_row *out);
/* One of the image's captions, drawn by rng. VLP_ERR_NOT_FOUND without captions. */
vlp_status vlp_reader_draw_caption(vlp_reader *reader, int64_t image_id, vlp_rng *rng,
                                   vlp_caption_row *out);
/* A question in the place of a caption, and one of its answers, drawn by rng as often as people
 * gave it. */
vlp_status vlp_reader_question(vlp_reader *reader, int64_t question_id, vlp_rng *rng,
                               vlp_caption_row *out);

#endif
