/* Captions as people have them -> clean UTF-8 on one line. */
#ifndef VLP_DATASETS_CAPTION_H
#define VLP_DATASETS_CAPTION_H

#include "core/memory.h"

#include <stdbool.h>

enum { VLP_CAPTION_MAX = 65536 }; /* bytes kept of one caption; the tokenizer truncates later */

/* Length of the well-formed UTF-8 sequence at s (n bytes left), 0 when malformed. */
size_t vlp_utf8_sequence(const char *s, size_t n);

/* Writes the cleaned text to `out` (cleared first): malformed UTF-8 becomes U+FFFD, which
 * tokenizers drop; control characters and newlines become spaces, NUL vanishes; the HTML entities
 * of common exports and numeric ones are decoded once; spaces collapse and are trimmed; composed
 * (NFC). *repaired
 * tells whether bytes had to be replaced, dropped or cut. */
vlp_status vlp_caption_clean(vlp_buf *out, const char *text, size_t len, bool *repaired);

/* ALBEF's pre_caption on a cleaned text, in place: lower case, no punctuation, hyphens and slashes
 * to spaces, at most max_words words (0 = all). */
enum { VLP_CAPTION_ALBEF_WORDS = 30 };
vlp_status vlp_caption_albef(vlp_buf *text, int max_words);

/* 64-bit hash of the text without ASCII case and without punctuation at its end: captions with the
 * same hash are positives of one another. */
int64_t vlp_caption_hash(const char *text, size_t len);

#endif
