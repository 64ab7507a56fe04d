#include "text/tokenizer.h"

#include "text/tokenizer_kind.h"

#include "core/file.h"

#include <string.h>

/* In the order in which a folder that holds several is asked. */
static const vlp_tokenizer_kind *const kinds[] = {&vlp_wordpiece_kind};

static bool ends_with(const char *text, const char *end) {
    size_t len = strlen(text), end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static vlp_status open_folder(vlp_tokenizer **out, const char *folder) {
    vlp_buf file = {0};
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(kinds); i++) {
        VLP_TRY_DONE(vlp_path_join(&file, folder, kinds[i]->file));
        if (!vlp_path_exists(file.data)) continue;
        status = kinds[i]->open(out, folder, file.data);
        goto done;
    }
    status = VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no tokenizer in this folder: %s is missing", folder,
                      kinds[0]->file);
done:
    vlp_buf_free(&file);
    return status;
}

static vlp_status open_file(vlp_tokenizer **out, const char *file) {
    const char *slash = strrchr(file, '/');
    char *folder = slash ? vlp_strndup(file, (size_t)(slash - file) + 1) : vlp_strdup(".");
    if (!folder) return VLP_ERR_MEMORY;
    vlp_status status = VLP_FAIL(
        VLP_ERR_UNSUPPORTED, "%s: not a tokenizer file; a folder or a vocab.txt is expected", file);
    for (size_t i = 0; i < VLP_COUNT(kinds); i++) {
        if (!ends_with(file, kinds[i]->suffix)) continue;
        status = kinds[i]->open(out, folder, file);
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

vlp_status vlp_tokenizer_save(const vlp_tokenizer *tokenizer, const char *folder) {
    VLP_TRY(vlp_make_folder(folder));
    return tokenizer->kind->save(tokenizer, folder);
}

int32_t vlp_tokenizer_size(const vlp_tokenizer *tokenizer) {
    return tokenizer->vocab.size;
}

vlp_special_ids vlp_tokenizer_special(const vlp_tokenizer *tokenizer) {
    return tokenizer->special;
}

bool vlp_tokenizer_is_special(const vlp_tokenizer *tokenizer, int32_t id) {
    const vlp_special_ids *s = &tokenizer->special;
    return id == s->pad || id == s->unk || id == s->cls || id == s->sep || id == s->mask;
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

int vlp_tokenizer_encode(const vlp_tokenizer *tokenizer, const char *text, size_t len, bool special,
                         int32_t *ids, int max) {
    int head = special && tokenizer->special.cls >= 0,
        tail = special && tokenizer->special.sep >= 0;
    VLP_ASSERT(max >= head + tail, "%d ids cannot hold [CLS] and [SEP]", max);
    if (head) ids[0] = tokenizer->special.cls;
    int n =
        head + tokenizer->kind->encode(tokenizer, text, len, false, ids + head, max - head - tail);
    if (tail) ids[n++] = tokenizer->special.sep;
    return n;
}

int vlp_tokenizer_encode_literal(const vlp_tokenizer *tokenizer, const char *text, size_t len,
                                 int32_t *ids, int max) {
    return tokenizer->kind->encode(tokenizer, text, len, true, ids, max);
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
    const vlp_tokenizer_kind *kind = tokenizer->kind;
    const vlp_special_ids *special = &tokenizer->special;
    int head = special->cls >= 0, tail = special->sep >= 0;
    int room = max - head - 2 * tail;
    VLP_ASSERT(room >= 0, "%d ids cannot hold a pair", max);
    int n1 = kind->encode(tokenizer, first.text, first.len, false, ids + head, room);
    int n2 = kind->encode(tokenizer, second.text, second.len, false, NULL, room);
    if (!truncate_pair(truncate, room, &n1, &n2)) return -1;
    int middle = head + n1 + tail, n = middle + n2 + tail;
    if (head) ids[0] = special->cls;
    if (tail) ids[middle - 1] = ids[n - 1] = special->sep;
    kind->encode(tokenizer, second.text, second.len, false, ids + middle, n2);
    for (int i = 0; types && i < n; i++) types[i] = i >= middle;
    return n;
}

vlp_status vlp_tokenizer_decode(const vlp_tokenizer *tokenizer, const int32_t *ids, int n,
                                bool skip_special, vlp_buf *out) {
    for (int i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab.size)
            return VLP_FAIL(VLP_ERR_USAGE, "token id %d at %d is outside the vocabulary, 0 to %d",
                            ids[i], i, tokenizer->vocab.size - 1);
    return tokenizer->kind->decode(tokenizer, ids, n, skip_special, out);
}
