/* What a tokenizer kind (WordPiece, BPE, ...) provides. Private to text/: adding a kind is a file
 * with one of these tables and a row in tokenizer.c. */
#ifndef VLP_TEXT_TOKENIZER_KIND_H
#define VLP_TEXT_TOKENIZER_KIND_H

#include "text/tokenizer.h"
#include "text/vocab.h"

typedef struct {
    const char *name;   /* "wordpiece" */
    const char *file;   /* what a model folder of this kind holds: "vocab.txt" */
    const char *suffix; /* what the name of a bare file of this kind ends with: ".txt" */

    /* `file` is the vocabulary itself, `folder` where the configuration may be. */
    vlp_status (*open)(vlp_tokenizer **out, const char *folder, const char *file);
    void (*free)(vlp_tokenizer *tokenizer);
    vlp_status (*save)(const vlp_tokenizer *tokenizer, const char *folder);

    /* At most max ids, without [CLS] and [SEP]; ids may be NULL to count. A smaller max gives a
     * prefix. `literal`: special tokens in the text are ordinary text. */
    int (*encode)(const vlp_tokenizer *tokenizer, const char *text, size_t len, bool literal,
                  int32_t *ids, int max);
    /* Ids are in range and, when wanted, free of special tokens. */
    vlp_status (*decode)(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                         bool skip_special, vlp_buf *out);
    bool (*continues_word)(const vlp_tokenizer *tokenizer, int32_t id);
} vlp_tokenizer_kind;

/* The first member of every kind's own struct. */
struct vlp_tokenizer {
    const vlp_tokenizer_kind *kind;
    vlp_vocab vocab;
    vlp_special_ids special;
};

bool vlp_tokenizer_is_special(const vlp_tokenizer *tokenizer, int32_t id);

extern const vlp_tokenizer_kind vlp_wordpiece_kind;

#endif
