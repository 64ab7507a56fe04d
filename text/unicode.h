/* UTF-8 and the Unicode properties that tokenizers ask for.
 *
 * Code points that Unicode 15 added count as unassigned, as in the reference's Unicode 14 tables,
 * so that a text has the same ids on every machine. */
#ifndef VLP_TEXT_UNICODE_H
#define VLP_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed sequence at text[0..len), its code point in *out; 0 when malformed (also
 * surrogates, overlong forms and beyond U+10FFFF), so that a caller steps over one byte. */
int vlp_utf8_next(const char *text, size_t len, uint32_t *out);
/* Writes 1 to 4 bytes. The code point is a scalar value. */
int vlp_utf8_put(uint32_t code, char out[4]);
/* Whether all of it is well formed. */
bool vlp_utf8_valid(const char *text, size_t len);

typedef enum {
    VLP_UNICODE_OTHER,
    VLP_UNICODE_SPACE,   /* what python's str.split() splits at, controls aside: Zs, Zl, Zp */
    VLP_UNICODE_CONTROL, /* categories C*: controls, formats, surrogates, private, unassigned */
    VLP_UNICODE_PUNCT,   /* categories P* */
    VLP_UNICODE_MARK,    /* category Mn: what strip_accents drops */
} vlp_unicode_kind;
vlp_unicode_kind vlp_unicode_kind_of(uint32_t code);

/* What regular expressions call \s (the property White_Space), \p{L} and \p{N}; and python's
 * str.isspace(), which adds four ASCII controls to the first. */
bool vlp_unicode_is_white_space(uint32_t code);
bool vlp_unicode_is_space(uint32_t code);
bool vlp_unicode_is_letter(uint32_t code);
bool vlp_unicode_is_number(uint32_t code);

/* CJK ideographs in BERT's sense: the unified and compatibility blocks, not kana or hangul. */
bool vlp_unicode_is_ideograph(uint32_t code);

/* Full lower case without context: 1 code point, 2 for U+0130. Returns how many. */
int vlp_unicode_lower(uint32_t code, uint32_t out[2]);

/* For the final-sigma rule (Unicode 3.13): a letter with case, and what is looked through. */
bool vlp_unicode_is_cased(uint32_t code);
bool vlp_unicode_is_case_ignorable(uint32_t code);

/* Canonical decomposition of one code point into at most 4; returns how many. */
int vlp_unicode_decompose(uint32_t code, uint32_t out[4]);
/* The compatible decomposition (NFKD), at most max. */
int vlp_unicode_decompose_compatibly(uint32_t code, uint32_t *out, int max);
uint8_t vlp_unicode_combining_class(uint32_t code);

/* NFC of well-formed text, at most max bytes; out is not text. A run of more than 256 combining
 * characters is composed in parts. Allocates nothing. */
size_t vlp_unicode_compose(const char *text, size_t len, char *out, size_t max);

const char *vlp_unicode_version(void); /* of utf8proc, at run time */

#endif
