/* What a tokenizer kind (WordPiece, BPE, ...) provides, and what reads one. Private to text/:
 * adding a kind is a file with one of these tables and a reader's row in tokenizer.c. */
#ifndef VLP_TEXT_TOKENIZER_KIND_H
#define VLP_TEXT_TOKENIZER_KIND_H

#include "core/json.h"
#include "text/added.h"
#include "text/tokenizer.h"

/* Text between added tokens. */
typedef struct {
    const char *text;
    size_t len;
    bool literal; /* special tokens in the text are ordinary text */
    bool prefix;  /* begins a text that is read as if a space were in front */
} vlp_segment;

typedef struct {
    const char *name; /* "wordpiece" */
    void (*free)(vlp_tokenizer *tokenizer);
    vlp_status (*save)(const vlp_tokenizer *tokenizer, const char *folder);

    /* At most max ids, without those around the text; ids may be NULL to count. A smaller max
     * gives a prefix. */
    int (*encode)(const vlp_tokenizer *tokenizer, const vlp_segment *segment, int32_t *ids,
                  int max);
    /* Ids are in range and, when wanted, free of special tokens. */
    vlp_status (*decode)(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                         bool skip_special, vlp_buf *out);
    bool (*continues_word)(const vlp_tokenizer *tokenizer, int32_t id);
} vlp_tokenizer_kind;

/* What stands around a text or a pair, in order. */
enum { VLP_PART_FIRST = -1, VLP_PART_SECOND = -2, VLP_TEMPLATE_MAX = 12 };
typedef struct {
    int32_t id; /* a token, or a text: VLP_PART_FIRST, VLP_PART_SECOND */
    uint8_t type;
} vlp_template_item;
typedef struct {
    vlp_template_item items[VLP_TEMPLATE_MAX];
    int count;
} vlp_template;

/* Which texts are read with a space in front, so that their first word has the token that it has
 * inside a text. */
typedef enum {
    VLP_PREFIX_NONE,
    VLP_PREFIX_TEXT,     /* a text that does not begin with white space */
    VLP_PREFIX_SEGMENTS, /* also what follows an added token */
    VLP_PREFIX_ALWAYS,   /* every text */
} vlp_prefix_space;

/* The first member of every kind's own struct. */
struct vlp_tokenizer {
    const vlp_tokenizer_kind *kind;
    vlp_vocab vocab;
    int32_t own_size; /* tokens of the vocabulary's own file; those of added_tokens.json follow */
    vlp_special_ids special;
    vlp_added added;
    bool added_inside; /* the kind itself finds them, after it has cleaned the text */
    vlp_prefix_space prefix_space;
    vlp_template single, pair;
    bool ends_once; /* what a text itself ends with is not put behind it again */
    vlp_buf source; /* the tokenizer.json that it was read from; saved as it is */
};

#define VLP_NO_SPECIALS                                                                            \
    (vlp_special_ids) {                                                                            \
        -1, -1, -1, -1, -1, -1, -1                                                                 \
    }
enum { VLP_SPECIAL_COUNT = 7 };

/* The members of vlp_special_ids in order, and the keys that name them in files ("pad_token"). */
void vlp_special_list(const vlp_special_ids *special, int32_t ids[VLP_SPECIAL_COUNT]);
extern const char *const vlp_special_keys[VLP_SPECIAL_COUNT];

/* [CLS] A [SEP], and [CLS] A [SEP] B [SEP] with types 0 and 1; with two_separators [CLS] A [SEP]
 * [SEP] B [SEP], all of type 0 (RoBERTa). What special lacks is left out. */
void vlp_template_cls_sep(vlp_tokenizer *tokenizer, bool two_separators);
void vlp_template_add(vlp_template *t, int32_t id, int type); /* what does not fit is an error of
                                                                 the caller */

bool vlp_tokenizer_is_special(const vlp_tokenizer *tokenizer, int32_t id);

/* Frees what this struct holds and the tokenizer itself. */
void vlp_tokenizer_free_base(vlp_tokenizer *tokenizer);

extern const vlp_tokenizer_kind vlp_wordpiece_kind, vlp_byte_bpe_kind, vlp_clip_bpe_kind;

/* Readers: `file` is the vocabulary itself, `folder` where its companions are. */
vlp_status vlp_wordpiece_open(vlp_tokenizer **out, const char *folder, const char *file);
vlp_status vlp_bpe_open(vlp_tokenizer **out, const char *folder, const char *file);
vlp_status vlp_openai_bpe_open(vlp_tokenizer **out, const char *folder, const char *file);
vlp_status vlp_sentencepiece_open(vlp_tokenizer **out, const char *folder, const char *file);
vlp_status vlp_tokenizer_json_open(vlp_tokenizer **out, const char *folder, const char *file);

#endif
