/* BERT's basic tokenizer (Devlin et al., 2019, arXiv:1810.04805, and its public code): text to
 * words.
 *
 * Controls, U+FFFD, NUL and malformed UTF-8 are dropped; ideographs stand alone; the text is cut at
 * white space; words are lower-cased, decomposed (NFD) and stripped of accents when asked; each
 * punctuation mark is its own word. Runs in constant memory and allocates nothing. */
#ifndef VLP_TEXT_NORMALIZE_H
#define VLP_TEXT_NORMALIZE_H

#include <stdbool.h>
#include <stddef.h>

/* No word may be configured to be longer than this; more code points only raise `chars`. */
#define VLP_WORD_MAX_CHARS 256

typedef struct {
    bool lower_case;
    bool strip_accents;
    bool split_ideographs; /* tokenize_chinese_chars */
    bool final_sigma;      /* python's whole-word lower(): a capital sigma that ends a word */
} vlp_normalize_options;

/* One word: UTF-8, not NUL-terminated, `chars` code points. Beyond VLP_WORD_MAX_CHARS only the
 * beginning is in `word`. Returns false to stop. */
typedef bool (*vlp_word_sink)(void *user, const char *word, size_t bytes, size_t chars);

void vlp_normalize_words(const vlp_normalize_options *options, const char *text, size_t len,
                         vlp_word_sink sink, void *user);

#endif
