/* What JSON importers share: finding the keys, captions in whatever shape, the other members. */
#ifndef VLP_DATASETS_JSON_ROW_H
#define VLP_DATASETS_JSON_ROW_H

#include "datasets/session.h"

/* The value under the key that was asked for (a path "a.b" too), or under the first of keys that
 * is there and not null; *found names it. NULL = none. */
vlp_json *vlp_json_row_key(const vlp_json *object, const char *asked, const char *const *keys,
                           const char **found);

/* Whether a caption value holds any text: a string or a number, or a list or object of them. */
bool vlp_json_row_says(const vlp_json *value);
/* Adds every text of the value as a caption of the image (0 = as a text). */
vlp_status vlp_json_row_captions(vlp_session *session, int64_t id, const vlp_json *value,
                                 int64_t row);

/* The object's other scalar members as JSON in `buffer`, for filters; *out NULL = none. */
vlp_status vlp_json_row_fields(const vlp_json *object, const char *image_key,
                               const char *caption_key, vlp_buf *buffer, const char **out);

#endif
