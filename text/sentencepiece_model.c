/* A SentencePiece model file: the parts of sentencepiece_model.proto that encoding needs, in the
 * wire format of Protocol Buffers. */
#include "core/file.h"
#include "text/sentencepiece.h"
#include "text/token_config.h"

#include <stdio.h>
#include <string.h>

enum { MAX_FILE_BYTES = 1 << 28 };

/* ---- the wire format: key = field << 3 | type, then a number or bytes ---- */

typedef struct {
    const uint8_t *at, *end;
} wire;

typedef struct {
    int number;
    uint64_t value; /* of a number */
    float real;     /* of 4 bytes */
    const char *bytes;
    size_t len; /* of bytes */
} field;

static bool varint(wire *w, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* False at the end and, with *status set, where the bytes make no sense. */
static bool next_field(wire *w, field *f, vlp_status *status) {
    uint64_t key, size = 0;
    if (w->at == w->end) return false;
    *f = (field){0};
    bool good = varint(w, &key) && key >> 3 > 0 && key >> 3 < 1 << 28;
    if (good && (key & 7) == 0) good = varint(w, &f->value);
    if (good && (key & 7) == 2) good = varint(w, &size);
    if (good && (key & 7) == 5) size = 4;
    if (good && (key & 7) == 1) size = 8;
    good = good && (key & 7) != 3 && (key & 7) != 4 && (key & 7) < 6 &&
           size <= (uint64_t)(w->end - w->at);
    if (!good) {
        *status = VLP_FAIL(VLP_ERR_FORMAT, "not a SentencePiece model, or damaged");
        return false;
    }
    f->number = (int)(key >> 3);
    f->bytes = (const char *)w->at;
    f->len = (size_t)size;
    if (size == 4) memcpy(&f->real, w->at, 4);
    w->at += size;
    return true;
}

static wire inside(const field *f) {
    return (wire){(const uint8_t *)f->bytes, (const uint8_t *)f->bytes + f->len};
}

/* ---- its messages ---- */

static vlp_status read_piece(vlp_sentencepiece *s, const field *message) {
    vlp_status status = VLP_OK;
    wire w = inside(message);
    field f, piece = {0};
    float score = 0;
    int type = VLP_PIECE_NORMAL;
    while (next_field(&w, &f, &status)) {
        if (f.number == 1) piece = f;
        if (f.number == 2) score = f.real;
        if (f.number == 3) type = f.value < 100 ? (int)f.value : 100;
    }
    if (status == VLP_OK) status = vlp_sentencepiece_add(s, piece.bytes, piece.len, score, type);
    if (status != VLP_OK) vlp_fail_in(status, "piece %d", s->piece_count);
    return status;
}

typedef struct {
    int64_t bos, eos, pad;
} ids;

static vlp_status read_trainer(vlp_sentencepiece *s, const field *message, ids *special) {
    vlp_status status = VLP_OK;
    wire w = inside(message);
    for (field f; next_field(&w, &f, &status);) {
        if (f.number == 3 && f.value != 1 && f.value != 2)
            return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                            "model type %d; unigram (1) and BPE (2) are supported", (int)f.value);
        if (f.number == 24 && f.value)
            return VLP_FAIL(VLP_ERR_UNSUPPORTED, "treat_whitespace_as_suffix is not supported");
        if (f.number == 3) s->is_bpe = f.value == 2;
        if (f.number == 35) s->byte_fallback = f.value != 0;
        if (f.number == 41) special->bos = (int64_t)f.value;
        if (f.number == 42) special->eos = (int64_t)f.value;
        if (f.number == 43) special->pad = (int64_t)f.value;
    }
    return status;
}

static vlp_status read_normalizer(vlp_sentencepiece *s, const field *message) {
    vlp_status status = VLP_OK;
    wire w = inside(message);
    for (field f; status == VLP_OK && next_field(&w, &f, &status);) {
        if (f.number == 2 && !s->units) status = vlp_sentencepiece_rules(s, f.bytes, f.len);
        if (f.number == 3) s->dummy_prefix = f.value != 0;
        if (f.number == 4) s->remove_extra = f.value != 0;
        if (f.number == 5) s->escape = f.value != 0;
    }
    return status;
}

static int32_t in_range(const vlp_sentencepiece *s, int64_t id) {
    return id >= 0 && id < s->piece_count ? (int32_t)id : -1;
}

static vlp_status read_model(vlp_sentencepiece *s) {
    vlp_status status = VLP_OK;
    ids special = {1, 2, -1}; /* the trainer's defaults */
    wire w = {(const uint8_t *)s->model.data, (const uint8_t *)s->model.data + s->model.len};
    for (field f; status == VLP_OK && next_field(&w, &f, &status);) {
        if (f.number == 1) status = read_piece(s, &f);
        if (f.number == 2) status = read_trainer(s, &f, &special);
        if (f.number == 3) status = read_normalizer(s, &f);
    }
    if (status != VLP_OK) return status;
    s->base.special.bos = in_range(s, special.bos);
    s->base.special.eos = in_range(s, special.eos);
    s->base.special.pad = in_range(s, special.pad);
    return vlp_sentencepiece_finish(s);
}

vlp_status vlp_sentencepiece_open(vlp_tokenizer **out, const char *folder, const char *file) {
    vlp_status status = VLP_OK;
    vlp_buf path = {0};
    vlp_sentencepiece *s = NULL;
    VLP_TRY_DONE(vlp_sentencepiece_new(&s));
    VLP_TRY_DONE(vlp_token_config_open(&s->config, folder, &path));
    VLP_TRY_DONE(vlp_file_read(file, MAX_FILE_BYTES, &s->model));
    status = read_model(s);
    if (status != VLP_OK) vlp_fail_in(status, "%s", file);
    if (status == VLP_OK) status = vlp_sentencepiece_configure(s, s->config, path.data, file);
done:
    vlp_buf_free(&path);
    if (status == VLP_OK)
        *out = &s->base;
    else if (s)
        vlp_tokenizer_free(&s->base);
    return status;
}

vlp_status vlp_sentencepiece_save(const vlp_tokenizer *tokenizer, const char *folder) {
    const vlp_sentencepiece *s = (const vlp_sentencepiece *)tokenizer;
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    vlp_json *config = s->config ? vlp_json_copy(s->config) : vlp_json_new_object();
    VLP_TRY_DONE(vlp_path_join(&path, folder, "spiece.model"));
    VLP_TRY_DONE(vlp_file_write(path.data, s->model.data, s->model.len));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "tokenizer_config.json"));
    status = vlp_json_save(config, path.data);
done:
    vlp_json_free(config);
    vlp_buf_free(&path);
    return status;
}
