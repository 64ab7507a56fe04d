/* Added tokens: strings that a tokenizer takes out of the text as they are, before it looks at
 * words ("[MASK]", "<|endoftext|>", what a fine-tuning added). Private to text/. */
#ifndef VLP_TEXT_ADDED_H
#define VLP_TEXT_ADDED_H

#include "text/vocab.h"

typedef struct {
    int32_t id;
    bool special;        /* decoding leaves it out when asked */
    bool lstrip, rstrip; /* white space on that side goes with it */
} vlp_added_token;

/* {0} is empty and valid. */
typedef struct {
    vlp_added_token *tokens;
    int count, cap;
    bool starts[256]; /* first bytes */
    bool lower_case;  /* texts are in lower case when they are searched: </S> is </s> */
} vlp_added;

void vlp_added_free(vlp_added *added);

/* The token with this id of `vocab`; a second time replaces its properties. */
vlp_status vlp_added_put(vlp_added *added, const vlp_vocab *vocab, vlp_added_token token);
const vlp_added_token *vlp_added_find(const vlp_added *added, int32_t id); /* NULL: none */

/* The longest that text begins with, or NULL. */
const vlp_added_token *vlp_added_at(const vlp_added *added, const vlp_vocab *vocab,
                                    const char *text, size_t len, size_t *bytes);

typedef struct {
    size_t start, end; /* with the white space that the token takes along */
    const vlp_added_token *token;
} vlp_added_match;

/* The first one, of those the longest, in text[from..len). */
bool vlp_added_next(const vlp_added *added, const vlp_vocab *vocab, const char *text, size_t len,
                    size_t from, vlp_added_match *match);

#endif
