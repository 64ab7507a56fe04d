/* The first cut of a text for byte-pair encoding: what GPT-2 and CLIP write as regular expressions.
 * Private to text/.
 *
 *     GPT-2  's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *     CLIP   <|startoftext|>|<|endoftext|>|'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+
 *
 * Both take the first alternative that matches; CLIP's leaves white space out. A malformed byte
 * counts as a character that is neither. */
#ifndef VLP_TEXT_PRETOKEN_H
#define VLP_TEXT_PRETOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* The piece at text[*at..): [*start, *end), and *at moves behind it; false at the end. */
bool vlp_pretoken_gpt2(const char *text, size_t len, size_t *at, size_t *start, size_t *end);

/* Where the first piece ends when a space is put in front of the text; the piece begins with it. */
size_t vlp_pretoken_gpt2_prefixed(const char *text, size_t len);

/* CLIP's without its special tokens, which the caller compares first. */
bool vlp_pretoken_clip(const char *text, size_t len, size_t *at, size_t *start, size_t *end);

#endif
