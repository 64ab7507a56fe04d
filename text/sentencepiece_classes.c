/* Tokenizers that share the SentencePiece model and differ in what they do to a text and put around
 * it: rows by tokenizer_config.json's class. */
#include "text/sentencepiece.h"
#include "text/token_config.h"

#include <stdio.h>
#include <string.h>

enum { PAD, UNK, CLS, SEP, MASK, BOS, EOS }; /* as in vlp_special_ids */

typedef struct {
    const char *name;
    vlp_status (*around)(vlp_sentencepiece *s, const vlp_json *config);
    const char *specials[VLP_SPECIAL_COUNT]; /* unless the configuration names others */
    vlp_piece_cleaning cleaning;
} class;

/* White space beside a special token goes with it; [MASK] takes only what is before it. */
static vlp_status add_special(vlp_sentencepiece *s, int32_t id, bool mask) {
    if (id < 0) return VLP_OK;
    return vlp_added_put(&s->base.added, &s->base.vocab, (vlp_added_token){id, true, true, !mask});
}

/* ---- T5 and LLaMA: the model says which ids are special ---- */

/* The sentinels: <extra_id_99> has the first id after the pieces. */
static vlp_status add_sentinels(vlp_sentencepiece *s, int64_t count) {
    if (count < 0 || count > 10000)
        return VLP_FAIL(VLP_ERR_LIMIT, "extra_ids: not from 0 to 10000");
    while (count-- > 0) {
        char token[40];
        int n = snprintf(token, sizeof token, "<extra_id_%lld>", (long long)count);
        VLP_TRY(vlp_vocab_add(&s->base.vocab, token, (size_t)n));
        VLP_TRY(add_special(s, s->base.vocab.size - 1, false));
    }
    return VLP_OK;
}

static vlp_status t5(vlp_sentencepiece *s, const vlp_json *config) {
    vlp_tokenizer *t = &s->base;
    VLP_TRY(add_sentinels(s, vlp_json_int(config, "extra_ids", 100)));
    VLP_TRY(add_special(s, t->special.eos, false));
    VLP_TRY(add_special(s, t->special.unk, false));
    VLP_TRY(add_special(s, t->special.pad, false));
    t->special.sep = t->special.eos;
    t->ends_once = true;
    vlp_template_cls_sep(t, false);
    for (int i = 0; i < t->pair.count; i++) t->pair.items[i].type = 0;
    return VLP_OK;
}

static vlp_status llama(vlp_sentencepiece *s, const vlp_json *config) {
    vlp_tokenizer *t = &s->base;
    bool bos = vlp_json_bool(config, "add_bos_token", true) && t->special.bos >= 0;
    if (bos) t->special.cls = t->special.bos;
    if (bos) vlp_template_add(&t->single, t->special.bos, 0);
    vlp_template_add(&t->single, VLP_PART_FIRST, 0);
    t->pair = t->single;
    if (bos) vlp_template_add(&t->pair, t->special.bos, 1);
    vlp_template_add(&t->pair, VLP_PART_SECOND, 1);
    return VLP_OK;
}

static vlp_status plain(vlp_sentencepiece *s, const vlp_json *config) {
    if (s->is_bpe && s->byte_fallback) return llama(s, config);
    vlp_template_add(&s->base.single, VLP_PART_FIRST, 0);
    vlp_template_add(&s->base.pair, VLP_PART_FIRST, 0);
    vlp_template_add(&s->base.pair, VLP_PART_SECOND, 0);
    return VLP_OK;
}

/* ---- ALBERT, XLNet and SigLIP: the class does ---- */

static vlp_status albert(vlp_sentencepiece *s, const vlp_json *config) {
    (void)config;
    s->cut_numbers = true;
    vlp_template_cls_sep(&s->base, false);
    return VLP_OK;
}

/* A <sep> <cls> and A <sep> B <sep> <cls>, whose <cls> has a type of its own. */
static vlp_status xlnet(vlp_sentencepiece *s, const vlp_json *config) {
    (void)config;
    static const char *const more[] = {"<eop>", "<eod>"};
    vlp_tokenizer *t = &s->base;
    s->cut_numbers = true;
    for (size_t i = 0; i < VLP_COUNT(more); i++)
        VLP_TRY(add_special(s, vlp_tokenizer_find(t, more[i]), false));
    vlp_template_add(&t->single, VLP_PART_FIRST, 0);
    vlp_template_add(&t->single, t->special.sep, 0);
    t->pair = t->single;
    vlp_template_add(&t->single, t->special.cls, 2);
    vlp_template_add(&t->pair, VLP_PART_SECOND, 1);
    vlp_template_add(&t->pair, t->special.sep, 1);
    vlp_template_add(&t->pair, t->special.cls, 2);
    return VLP_OK;
}

/* </s> ends a text and pads. The space in front is the class's own work: after a special token
 * there is none. */
static vlp_status siglip(vlp_sentencepiece *s, const vlp_json *config) {
    (void)config;
    vlp_tokenizer *t = &s->base;
    s->inside = true;
    t->prefix_space = VLP_PREFIX_ALWAYS;
    t->ends_once = true;
    t->special.cls = -1;
    vlp_template_cls_sep(t, false);
    for (int i = 0; i < t->pair.count; i++) t->pair.items[i].type = 0;
    return VLP_OK;
}

#define ALBERT_SPECIALS                                                                            \
    { "<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "[CLS]", "[SEP]" }
#define XLNET_SPECIALS                                                                             \
    { "<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>" }
#define SIGLIP_SPECIALS                                                                            \
    { "</s>", "<unk>", NULL, "</s>", NULL, NULL, "</s>" }
#define FOLD(lower)                                                                                \
    { .lower_case = lower, .tidy = true, .unquote = true, .strip_accents = true }

static const class classes[] = {
    {"", plain, {NULL}, {0}},
    {"T5Tokenizer", t5, {NULL}, {0}},
    {"T5TokenizerFast", t5, {NULL}, {0}},
    {"LlamaTokenizer", llama, {NULL}, {0}},
    {"LlamaTokenizerFast", llama, {NULL}, {0}},
    {"AlbertTokenizer", albert, ALBERT_SPECIALS, FOLD(true)},
    {"AlbertTokenizerFast", albert, ALBERT_SPECIALS, FOLD(true)},
    {"XLNetTokenizer", xlnet, XLNET_SPECIALS, FOLD(false)},
    {"XLNetTokenizerFast", xlnet, XLNET_SPECIALS, FOLD(false)},
    {"SiglipTokenizer",
     siglip,
     SIGLIP_SPECIALS,
     {.lower_case = true, .space_mark = true, .drop_punctuation = true, .tidy = true}},
};

/* The special tokens by name. What stands around texts must be there. */
static vlp_status find_specials(vlp_sentencepiece *s, const class *is, const vlp_json *config,
                                const char *where) {
    const char *names[VLP_SPECIAL_COUNT];
    vlp_special_ids *x = &s->base.special;
    int32_t unknown = x->unk;
    int32_t *const ids[VLP_SPECIAL_COUNT] = {&x->pad,  &x->unk, &x->cls, &x->sep,
                                             &x->mask, &x->bos, &x->eos};
    memcpy(names, is->specials, sizeof names);
    VLP_TRY(vlp_token_config_names(config, where, names));
    for (int i = 0; i < VLP_SPECIAL_COUNT; i++) {
        *ids[i] = names[i] ? vlp_tokenizer_find(&s->base, names[i]) : -1;
        if (*ids[i] < 0 && is->specials[i] && (i == CLS || i == SEP))
            return VLP_FAIL(VLP_ERR_FORMAT,
                            "%s: no piece \"%.40s\", which %s puts around texts (%s)", where,
                            names[i], is->name, vlp_special_keys[i]);
        VLP_TRY(add_special(s, *ids[i], i == MASK));
    }
    x->unk = unknown;
    return VLP_OK;
}

static vlp_status read_cleaning(vlp_piece_cleaning *c, const vlp_json *config, const char *where) {
    bool keep_accents = !c->strip_accents;
    VLP_TRY(vlp_token_config_bool(config, where, "do_lower_case", &c->lower_case));
    if (!c->unquote) return VLP_OK; /* SigLIP has no other */
    VLP_TRY(vlp_token_config_bool(config, where, "keep_accents", &keep_accents));
    c->strip_accents = !keep_accents;
    return vlp_token_config_bool(config, where, "remove_space", &c->tidy);
}

vlp_status vlp_sentencepiece_configure(vlp_sentencepiece *s, const vlp_json *config,
                                       const char *where, const char *file) {
    static const vlp_json_typed keys[] = {{"tokenizer_class", VLP_JSON_STRING},
                                          {"extra_ids", VLP_JSON_INTEGER},
                                          {"add_bos_token", VLP_JSON_BOOL}};
    if (config) VLP_TRY(vlp_json_expect(config, keys, VLP_COUNT(keys), where));
    const char *name = vlp_json_string(config, "tokenizer_class", "");
    for (size_t i = 0; i < VLP_COUNT(classes); i++) {
        const class *is = &classes[i];
        if (strcmp(name, is->name) != 0) continue;
        s->cleaning = is->cleaning;
        s->cleans = is->specials[UNK] != NULL;
        if (s->cleans) VLP_TRY(read_cleaning(&s->cleaning, config, where));
        if (s->cleans) VLP_TRY(find_specials(s, is, config, where));
        s->base.added.lower_case = s->cleaning.lower_case;
        vlp_status status = is->around(s, config);
        return status == VLP_OK ? VLP_OK : vlp_fail_in(status, "%s", where);
    }
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: tokenizer_class %s is not supported for a SentencePiece model (%s); "
                    "T5Tokenizer, LlamaTokenizer, AlbertTokenizer, XLNetTokenizer and "
                    "SiglipTokenizer are",
                    where, name, file);
}
