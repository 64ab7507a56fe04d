/* WordPiece (Schuster and Nakajima, 2012; as used by BERT): opening and making one. Private to
 * text/. */
#ifndef VLP_TEXT_WORDPIECE_H
#define VLP_TEXT_WORDPIECE_H

#include "text/normalize.h"
#include "text/tokenizer_kind.h"

typedef struct {
    vlp_tokenizer base;
    vlp_normalize_options normalize;
    int strip_accents; /* as configured: 1, 0, or -1 for "as lower_case" */
    size_t max_word_chars;
    uint32_t continuation; /* trie node of "##"; 0 = no token continues a word */
} vlp_wordpiece;

/* A lower-casing (or not) WordPiece without tokens: add them to base.vocab, then finish. */
vlp_status vlp_wordpiece_new(vlp_wordpiece **out, bool lower_case);
/* Looks up the special tokens by name, [PAD] and so on where names[i] is NULL, in the order of
 * vlp_special_ids. Fails when the unknown token is absent. */
vlp_status vlp_wordpiece_finish(vlp_wordpiece *wordpiece,
                                const char *const names[VLP_SPECIAL_COUNT]);
/* Adds the lines of a vocab.txt; `where` names the file in errors. */
vlp_status vlp_wordpiece_read(vlp_wordpiece *wordpiece, const char *text, size_t len,
                              const char *where);

/* wordpiece_files.c: the kind's row `save`. */
vlp_status vlp_wordpiece_save(const vlp_tokenizer *tokenizer, const char *folder);

#endif
