/* SentencePiece (Kudo and Richardson, 2018, arXiv:1808.06226): unigram models (Kudo, 2018) and
 * byte-pair encoding with scored pieces, as T5, LLaMA and SigLIP use them. Private to text/. */
#ifndef VLP_TEXT_SENTENCEPIECE_H
#define VLP_TEXT_SENTENCEPIECE_H

#include "text/bpe.h"
#include "text/tokenizer_kind.h"

/* The numbers of sentencepiece_model.proto. */
typedef enum {
    VLP_PIECE_NORMAL = 1,
    VLP_PIECE_UNKNOWN = 2,
    VLP_PIECE_CONTROL = 3, /* <s>: never found in a text */
    VLP_PIECE_USER = 4,    /* always found whole */
    VLP_PIECE_UNUSED = 5,
    VLP_PIECE_BYTE = 6, /* <0x0A>, for characters that no piece has */
} vlp_piece_type;

typedef struct {
    vlp_tokenizer base; /* pieces with their U+2581 for a space */
    float *scores;
    uint8_t *types; /* [pieces] vlp_piece_type */
    int32_t piece_count, piece_cap;
    bool is_bpe, byte_fallback, has_user;
    bool dummy_prefix, remove_extra, escape; /* of white space */
    bool keep_edges; /* as a tokenizer.json has it: runs of spaces collapse, but those at the ends
                        stay, and one in front is the prefix */
    float min_score, max_score; /* of normal pieces */
    int32_t byte_ids[256];
    vlp_bpe bpe;

    vlp_buf model;    /* the file, saved as it is */
    vlp_json *config; /* tokenizer_config.json, saved as it is; NULL = there was none */
    /* The normaliser's rules: a double-array trie of UTF-8 and NUL-terminated replacements. */
    uint32_t *units;
    size_t unit_count;
    char *replacements;
    size_t replacement_bytes;
} vlp_sentencepiece;

vlp_status vlp_sentencepiece_new(vlp_sentencepiece **out);
vlp_status vlp_sentencepiece_add(vlp_sentencepiece *s, const char *piece, size_t len, float score,
                                 int type);
/* The rules as models hold them; len 0 = none. */
vlp_status vlp_sentencepiece_rules(vlp_sentencepiece *s, const char *blob, size_t len);
/* After the pieces. For BPE the merges follow from the scores unless there are some. */
vlp_status vlp_sentencepiece_finish(vlp_sentencepiece *s);

/* Normalised text, of which at most max bytes are written; returns the length of all of it. */
size_t vlp_sentencepiece_normalise(const vlp_sentencepiece *s, const char *text, size_t len,
                                   char *out, size_t max);
/* The bytes of the longest user-defined piece that text begins with, or 0. */
size_t vlp_sentencepiece_user(const vlp_sentencepiece *s, const char *text, size_t len,
                              int32_t *id);

/* sentencepiece_model.c */
vlp_status vlp_sentencepiece_save(const vlp_tokenizer *tokenizer, const char *folder);

extern const vlp_tokenizer_kind vlp_sentencepiece_kind;

#endif
