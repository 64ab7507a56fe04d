/* How CLIP's tokenizer cleans a text before it looks at words. Private to text/. */
#ifndef VLP_TEXT_CLIP_CLEAN_H
#define VLP_TEXT_CLIP_CLEAN_H

#include <stddef.h>

enum { VLP_CLIP_TEXT_MAX = 1 << 16 };

typedef enum {
    /* OpenAI's: ftfy's repairs, HTML entities decoded twice, white space collapsed and trimmed,
     * lower case (python's, with the final sigma). */
    VLP_CLIP_CLEAN_OPENAI,
    /* Hugging Face's fast one: NFC, white space collapsed, lower case. */
    VLP_CLIP_CLEAN_FAST,
} vlp_clip_clean;

/* Writes at most VLP_CLIP_TEXT_MAX bytes, cut between characters, and returns how many. Malformed
 * UTF-8 and NUL are dropped. Allocates nothing. */
size_t vlp_clip_cleaned(vlp_clip_clean how, const char *text, size_t len, char *out);

#endif
