/* The Title, Author and Description of a PNG file's tEXt chunks (PNG specification, 11.3.4.3). */
#ifndef VLP_TOOLS_PNGTEXT_H
#define VLP_TOOLS_PNGTEXT_H

#include "core/memory.h"

/* Each is NUL-terminated and empty when absent; bytes are as stored (Latin-1 or UTF-8). */
typedef struct {
    vlp_buf title, author, description;
} png_text;

/* Any bytes are fine: what is not PNG, or is cut off, gives the texts found so far. */
vlp_status png_text_read(png_text *out, const uint8_t *data, size_t len);
void png_text_free(png_text *text);

#endif
