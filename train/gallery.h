/* What a search found as one HTML page that needs nothing else. */
#ifndef VLP_TRAIN_GALLERY_H
#define VLP_TRAIN_GALLERY_H

#include "train/search.h"

/* Appends the page: thumbnails inside, each a link to its file. A picture that cannot be read is a
 * line that says why. */
vlp_status vlp_gallery_html(vlp_buf *page, const vlp_index *index, const char *title,
                            const vlp_found *found);

#endif
