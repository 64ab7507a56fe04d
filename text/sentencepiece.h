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

/* What a class of tokenizers does to a text before the model's own rules, in this order. */
typedef struct {
    bool lower_case;       /* each character for itself */
    bool space_mark;       /* U+2581 in the text is a space */
    bool drop_punctuation; /* ASCII's */
    bool tidy;             /* runs of white space become one space, and none is left at the ends */
    bool unquote;          /* `` and '' become \" */
    bool strip_accents;    /* compatible decomposition (NFKD) without combining characters */
} vlp_piece_cleaning;

typedef struct {
    vlp_tokenizer base; /* pieces with their U+2581 for a space */
    float *scores;
    uint8_t *types; /* [pieces] vlp_piece_type */
    int32_t piece_count, piece_cap;
    bool is_bpe, byte_fallback, has_user;
    bool dummy_prefix, remove_extra, escape; /* of white space */
    bool keep_edges; /* as a tokenizer.json has it: runs of spaces collapse, but those at the ends
                        stay, and one in front is the prefix */
    bool cleans;     /* the class has a cleaning */
    vlp_piece_cleaning cleaning;
    bool inside;      /* the class puts the space in front of a text itself (SigLIP) */
    bool cut_numbers; /* the comma of a piece "7," is a piece of its own (ALBERT, XLNet) */
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

/* The text as the class cleans it, of which at most max bytes are written; returns the length of
 * all of it. Malformed UTF-8 stays. */
size_t vlp_sentencepiece_clean(const vlp_sentencepiece *s, const vlp_segment *segment, char *out,
                               size_t max);
/* Normalised text, of which at most max bytes are written; returns the length of all of it. inside:
 * as if something stood in front, so that no space is put there, and one that is there stays. */
size_t vlp_sentencepiece_normalise(const vlp_sentencepiece *s, vlp_text text, bool inside,
                                   char *out, size_t max);
/* The bytes of the longest user-defined piece that text begins with, or 0. */
size_t vlp_sentencepiece_user(const vlp_sentencepiece *s, const char *text, size_t len,
                              int32_t *id);

/* What stands around the texts and what is done to them, by tokenizer_config.json's class; where
 * names that file, file the model. config may be NULL. */
vlp_status vlp_sentencepiece_configure(vlp_sentencepiece *s, const vlp_json *config,
                                       const char *where, const char *file);

/* sentencepiece_model.c */
vlp_status vlp_sentencepiece_save(const vlp_tokenizer *tokenizer, const char *folder);

extern const vlp_tokenizer_kind vlp_sentencepiece_kind;

#endif
