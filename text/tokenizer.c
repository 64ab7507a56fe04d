#include "text/tokenizer.h"

#include "text/tokenizer_kind.h"
#include "text/unicode.h"

#include "core/file.h"

#include <string.h>

typedef struct {
    const char *file;      /* what a model folder holds */
    const char *companion; /* what must be there too; NULL = nothing */
    vlp_status (*open)(vlp_tokenizer **out, const char *folder, const char *file);
} reader;

/* In the order in which a folder that holds several is asked. */
static const reader readers[] = {
    {"vocab.txt", NULL, vlp_wordpiece_open},
    {"vocab.json", "merges.txt", vlp_bpe_open},
    {"encoder.json", "vocab.bpe", vlp_bpe_open},
    {"spiece.model", NULL, vlp_sentencepiece_open},
    {"tokenizer.json", NULL, vlp_tokenizer_json_open},
    {"tokenizer.model", NULL, vlp_sentencepiece_open},
    {"bpe_simple_vocab_16e6.txt.gz", NULL, vlp_openai_bpe_open},
    {"bpe_simple_vocab_16e6.txt", NULL, vlp_openai_bpe_open},
};

/* How a bare file's name ends, in the order in which it is compared. */
static const struct {
    const char *suffix;
    vlp_status (*open)(vlp_tokenizer **out, const char *folder, const char *file);
} suffixes[] = {
    {"16e6.txt", vlp_openai_bpe_open},  {".gz", vlp_openai_bpe_open},
    {".txt", vlp_wordpiece_open},       {"vocab.json", vlp_bpe_open},
    {"encoder.json", vlp_bpe_open},     {".json", vlp_tokenizer_json_open},
    {".model", vlp_sentencepiece_open},
};

const char *const vlp_special_keys[VLP_SPECIAL_COUNT] = {
    "pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "bos_token", "eos_token"};

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool has_file(const char *folder, const char *name, vlp_buf *path, vlp_status *status) {
    if (*status == VLP_OK) *status = vlp_path_join(path, folder, name);
    return *status == VLP_OK && vlp_path_exists(path->data);
}

/* The first reader whose files are there, with the path of its vocabulary; NULL when none is. */
static const reader *find_reader(const char *folder, vlp_buf *path, vlp_status *status) {
    for (size_t i = 0; i < VLP_COUNT(readers); i++) {
        const reader *r = &readers[i];
        bool there = !r->companion || has_file(folder, r->companion, path, status);
        if (there && has_file(folder, r->file, path, status)) return r;
        if (*status != VLP_OK) return NULL;
    }
    return NULL;
}

bool vlp_tokenizer_in_folder(const char *folder) {
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    bool there = find_reader(folder, &path, &status) != NULL;
    vlp_buf_free(&path);
    return there;
}

static const char hash_key[] = "tokenizer_hash";

static void hash_text(const vlp_tokenizer *tokenizer, char hex[33]) {
    vlp_hash_hex(vlp_tokenizer_hash(tokenizer), hex);
}

void vlp_tokenizer_mark(const vlp_tokenizer *tokenizer, vlp_json *config) {
    char hex[33];
    hash_text(tokenizer, hex);
    vlp_json_set_string(config, hash_key, hex);
}

/* Whether the tokenizer is the one that the folder's weights were trained with, if it says so. */
static vlp_status match_weights(const vlp_tokenizer *tokenizer, const char *folder, vlp_buf *path) {
    vlp_json *config = NULL;
    char hex[33];
    VLP_TRY(vlp_path_join(path, folder, "config.json"));
    if (!vlp_path_exists(path->data)) return VLP_OK;
    VLP_TRY(vlp_json_load(&config, path->data));
    hash_text(tokenizer, hex);
    bool same = strcmp(vlp_json_string(config, hash_key, hex), hex) == 0;
    vlp_json_free(config);
    if (same) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: the tokenizer is not the one that the weights were trained with (its "
                    "tokens or their order differ from config.json's %s); put the original "
                    "tokenizer files back",
                    folder, hash_key);
}

static vlp_status open_folder(vlp_tokenizer **out, const char *folder) {
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    const reader *r = find_reader(folder, &path, &status);
    if (r) {
        status = r->open(out, folder, path.data);
        if (status == VLP_OK) status = match_weights(*out, folder, &path);
    } else if (status == VLP_OK)
        status = VLP_FAIL(VLP_ERR_NOT_FOUND,
                          "%s: no tokenizer in this folder: vocab.txt is missing, and so are "
                          "vocab.json with merges.txt and tokenizer.json",
                          folder);
    vlp_buf_free(&path);
    if (status != VLP_OK) {
        vlp_tokenizer_free(*out);
        *out = NULL;
    }
    return status;
}

static vlp_status open_file(vlp_tokenizer **out, const char *file) {
    const char *slash = strrchr(file, '/');
    char *folder = slash ? vlp_strndup(file, (size_t)(slash - file) + 1) : vlp_strdup(".");
    if (!folder) return VLP_ERR_MEMORY;
    vlp_status status = VLP_FAIL(VLP_ERR_UNSUPPORTED,
                                 "%s: not a tokenizer file; a folder, a vocab.txt, a vocab.json "
                                 "beside its merges.txt or a tokenizer.json is expected",
                                 file);
    for (size_t i = 0; i < VLP_COUNT(suffixes); i++) {
        if (!ends_with(file, suffixes[i].suffix)) continue;
        status = suffixes[i].open(out, folder, file);
        break;
    }
    vlp_free(folder);
    return status;
}

vlp_status vlp_tokenizer_open(vlp_tokenizer **out, const char *path) {
    *out = NULL;
    if (!vlp_path_exists(path))
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no such tokenizer folder or vocabulary", path);
    return vlp_is_folder(path) ? open_folder(out, path) : open_file(out, path);
}

void vlp_tokenizer_free(vlp_tokenizer *tokenizer) {
    if (tokenizer) tokenizer->kind->free(tokenizer);
}

void vlp_tokenizer_free_base(vlp_tokenizer *tokenizer) {
    vlp_vocab_free(&tokenizer->vocab);
    vlp_added_free(&tokenizer->added);
    vlp_buf_free(&tokenizer->source);
    vlp_free(tokenizer);
}

static vlp_status save_source(const vlp_tokenizer *tokenizer, const char *folder) {
    vlp_buf path = {0};
    vlp_status status = vlp_path_join(&path, folder, "tokenizer.json");
    if (status == VLP_OK)
        status = vlp_file_write(path.data, tokenizer->source.data, tokenizer->source.len);
    vlp_buf_free(&path);
    return status;
}

vlp_status vlp_tokenizer_save(const vlp_tokenizer *tokenizer, const char *folder) {
    VLP_TRY(vlp_make_folder(folder));
    return tokenizer->source.len ? save_source(tokenizer, folder)
                                 : tokenizer->kind->save(tokenizer, folder);
}

const char *vlp_tokenizer_kind_name(const vlp_tokenizer *tokenizer) {
    return tokenizer->kind->name;
}

vlp_hash vlp_tokenizer_hash(const vlp_tokenizer *tokenizer) {
    const char *name = tokenizer->kind->name;
    vlp_hash hash = vlp_hash_bytes(name, strlen(name));
    return vlp_hash_more(hash, tokenizer->vocab.bytes.data, tokenizer->vocab.bytes.len);
}

int32_t vlp_tokenizer_size(const vlp_tokenizer *tokenizer) {
    return tokenizer->vocab.size;
}

vlp_special_ids vlp_tokenizer_special(const vlp_tokenizer *tokenizer) {
    return tokenizer->special;
}

void vlp_special_list(const vlp_special_ids *s, int32_t ids[VLP_SPECIAL_COUNT]) {
    const int32_t list[VLP_SPECIAL_COUNT] = {s->pad,  s->unk, s->cls, s->sep,
                                             s->mask, s->bos, s->eos};
    memcpy(ids, list, sizeof list);
}

bool vlp_tokenizer_is_special(const vlp_tokenizer *tokenizer, int32_t id) {
    const vlp_added_token *added = vlp_added_find(&tokenizer->added, id);
    return added && added->special;
}

const char *vlp_tokenizer_token(const vlp_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= tokenizer->vocab.size) return NULL;
    return vlp_vocab_token(&tokenizer->vocab, id);
}

int32_t vlp_tokenizer_find(const vlp_tokenizer *tokenizer, const char *token) {
    return vlp_vocab_find(&tokenizer->vocab, token, strlen(token));
}

bool vlp_tokenizer_continues_word(const vlp_tokenizer *tokenizer, int32_t id) {
    if (id < 0 || id >= tokenizer->vocab.size) return false;
    return tokenizer->kind->continues_word(tokenizer, id);
}

/* ---- what stands around a text ---- */

void vlp_template_add(vlp_template *t, int32_t id, int type) {
    VLP_ASSERT(t->count < VLP_TEMPLATE_MAX, "a template of more than %d items", VLP_TEMPLATE_MAX);
    t->items[t->count++] = (vlp_template_item){id, (uint8_t)type};
}

void vlp_template_cls_sep(vlp_tokenizer *tokenizer, bool two_separators) {
    const vlp_special_ids *s = &tokenizer->special;
    const struct {
        int32_t id;
        bool missing;
        int type;
    } items[] = {
        {s->cls, s->cls < 0, 0},
        {VLP_PART_FIRST, false, 0},
        {s->sep, s->sep < 0, 0},
        {s->sep, s->sep < 0 || !two_separators, 0},
        {VLP_PART_SECOND, false, !two_separators},
        {s->sep, s->sep < 0, !two_separators},
    };
    tokenizer->single.count = tokenizer->pair.count = 0;
    for (size_t i = 0; i < VLP_COUNT(items); i++) {
        if (items[i].missing) continue;
        vlp_template_add(&tokenizer->pair, items[i].id, items[i].type);
        if (i < 3) vlp_template_add(&tokenizer->single, items[i].id, items[i].type);
    }
}

/* How many ids stand around the texts. */
static int around(const vlp_template *t) {
    int count = 0;
    for (int i = 0; i < t->count; i++) count += t->items[i].id >= 0;
    return count;
}

/* ---- encoding ---- */

static bool begins_with_space(const char *text, size_t len) {
    uint32_t code;
    return vlp_utf8_next(text, len, &code) && vlp_unicode_is_space(code);
}

static bool wants_prefix(const vlp_tokenizer *tokenizer, const char *text, size_t len, bool first) {
    switch (tokenizer->prefix_space) {
    case VLP_PREFIX_TEXT:
        return first && len && !begins_with_space(text, len);
    case VLP_PREFIX_SEGMENTS:
        return len && text[0] != ' ';
    case VLP_PREFIX_ALWAYS:
        return first;
    default:
        return false;
    }
}

/* The text's ids, at most max; ids may be NULL to count. */
static int encode_text(const vlp_tokenizer *tokenizer, vlp_text text, bool literal, int32_t *ids,
                       int max) {
    int n = 0;
    bool look = !literal && !tokenizer->added_inside, found = true;
    for (size_t at = 0; found && n < max;) {
        vlp_added_match match;
        found = look && vlp_added_next(&tokenizer->added, &tokenizer->vocab, text.text, text.len,
                                       at, &match);
        size_t stop = found ? match.start : text.len;
        vlp_segment segment = {text.text + at, stop - at, literal, false};
        segment.prefix =
            wants_prefix(tokenizer, segment.text,
                         tokenizer->prefix_space == VLP_PREFIX_TEXT ? text.len - at : segment.len,
                         at == 0) &&
            !(found && segment.len == 0 && match.token->lstrip);
        n += tokenizer->kind->encode(tokenizer, &segment, ids ? ids + n : NULL, max - n);
        if (!found || n == max) break;
        if (ids) ids[n] = match.token->id;
        n++;
        at = match.end;
    }
    return n;
}

/* Puts the parts in order; a text gets at most its number of ids. */
static int put_template(const vlp_tokenizer *tokenizer, const vlp_template *t,
                        const vlp_text texts[2], const int rooms[2], int32_t *ids, uint8_t *types) {
    int n = 0, text = 0; /* where the last text begins */
    for (int i = 0; i < t->count; i++) {
        int start = n, part = t->items[i].id == VLP_PART_SECOND;
        int32_t id = t->items[i].id;
        if (id < 0) {
            text = n;
            n += encode_text(tokenizer, texts[part], false, ids + n, rooms[part]);
        } else if (!tokenizer->ends_once || n == text || ids[n - 1] != id)
            ids[n++] = id;
        for (int j = start; types && j < n; j++) types[j] = t->items[i].type;
    }
    return n;
}

int vlp_tokenizer_encode(const vlp_tokenizer *tokenizer, const char *text, size_t len, bool special,
                         int32_t *ids, int max) {
    const vlp_text texts[2] = {{text, len}};
    if (!special) return encode_text(tokenizer, texts[0], false, ids, max);
    const int rooms[2] = {max - around(&tokenizer->single)};
    VLP_ASSERT(rooms[0] >= 0, "%d ids cannot hold what stands around a text", max);
    return put_template(tokenizer, &tokenizer->single, texts, rooms, ids, NULL);
}

int vlp_tokenizer_encode_literal(const vlp_tokenizer *tokenizer, const char *text, size_t len,
                                 int32_t *ids, int max) {
    return encode_text(tokenizer, (vlp_text){text, len}, true, ids, max);
}

void vlp_tokenizer_encode_padded(const vlp_tokenizer *tokenizer, const char *text, size_t len,
                                 int length, int32_t *ids, uint8_t *mask) {
    int32_t pad = tokenizer->special.pad >= 0 ? tokenizer->special.pad : 0;
    int n = vlp_tokenizer_encode(tokenizer, text, len, true, ids, length);
    for (int i = n; i < length; i++) ids[i] = pad;
    for (int i = 0; mask && i < length; i++) mask[i] = i < n;
}

/* Shortens the lengths to a sum of `room`. Lengths may be capped at `room` beforehand: what is cut
 * comes out the same. False when the named text would vanish. */
static bool truncate_pair(vlp_truncate truncate, int room, int *first, int *second) {
    if (*first + *second <= room) return true;
    if (truncate == VLP_TRUNCATE_FIRST) {
        *first = room - *second;
        return *first > 0;
    }
    if (truncate == VLP_TRUNCATE_SECOND) {
        *second = room - *first;
        return *second > 0;
    }
    int half = room / 2;
    if (*second <= half)
        *first = room - *second;
    else if (*first <= room - half)
        *second = room - *first;
    else {
        *first = room - half;
        *second = half;
    }
    return true;
}

int vlp_tokenizer_encode_pair(const vlp_tokenizer *tokenizer, vlp_text first, vlp_text second,
                              vlp_truncate truncate, int32_t *ids, uint8_t *types, int max) {
    const vlp_text texts[2] = {first, second};
    int room = max - around(&tokenizer->pair);
    VLP_ASSERT(room >= 0, "%d ids cannot hold a pair", max);
    int rooms[2] = {encode_text(tokenizer, first, false, NULL, room),
                    encode_text(tokenizer, second, false, NULL, room)};
    if (!truncate_pair(truncate, room, &rooms[0], &rooms[1])) return -1;
    return put_template(tokenizer, &tokenizer->pair, texts, rooms, ids, types);
}

vlp_status vlp_tokenizer_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                bool skip_special, vlp_buf *out) {
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab.size)
            return VLP_FAIL(VLP_ERR_USAGE, "token id %d at %d is outside the vocabulary, 0 to %d",
                            ids[i], i, tokenizer->vocab.size - 1);
    return tokenizer->kind->decode(tokenizer, ids, n, skip_special, out);
}
