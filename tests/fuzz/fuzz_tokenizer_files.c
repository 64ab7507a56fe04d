/* Opens the bytes as a tokenizer's files: the first byte chooses the kind, up to the first NUL is
 * one file (tokenizer_config.json, vocab.json), the rest the other. What opens must encode, decode
 * and survive being saved. */
#include "core/file.h"
#include "text/clip_clean.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256], saved[300];

static const char *const names[] = {"tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.json",
                                    "merges.txt",
                                    "tokenizer.json",
                                    "bpe_simple_vocab_16e6.txt",
                                    "bpe_simple_vocab_16e6.txt.gz",
                                    "spiece.model"};

/* What the two parts of the input are written as. */
static const char *const kinds[][2] = {
    {"vocab.json", "merges.txt"},
    {"tokenizer_config.json", "tokenizer.json"},
    {"tokenizer_config.json", "spiece.model"},
    {"tokenizer_config.json", "bpe_simple_vocab_16e6.txt"},
    {"tokenizer_config.json", "bpe_simple_vocab_16e6.txt.gz"},
};

static void put_file(const char *name, const uint8_t *data, size_t len) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb"); /* not the atomic write: no need to wait for the disk */
    VLP_ASSERT(file && fwrite(data, 1, len, file) == len && fclose(file) == 0, "%s", path);
}

static void clear(const char *where) {
    char path[512];
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", where, names[i]);
        unlink(path);
    }
}

static void remove_folders(void) {
    clear(saved);
    clear(folder);
    rmdir(saved);
    rmdir(folder);
}

static void make_folders(void) {
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-fuzz-XXXXXX", root ? root : "/tmp");
    VLP_ASSERT(mkdtemp(folder), "%s", folder);
    snprintf(saved, sizeof saved, "%s/saved", folder);
    atexit(remove_folders);
}

static void use(const vlp_tokenizer *t, const char *text, size_t len) {
    enum { ROOM = 512 };
    int32_t ids[ROOM], prefix[ROOM];
    uint8_t types[ROOM];
    int n = vlp_tokenizer_encode(t, text, len, false, ids, ROOM);
    for (int i = 0; i < n; i++) VLP_ASSERT(vlp_tokenizer_token(t, ids[i]), "id %d", ids[i]);
    int half = vlp_tokenizer_encode(t, text, len, false, prefix, n / 2);
    VLP_ASSERT(half == n / 2 && memcmp(ids, prefix, (size_t)half * sizeof *ids) == 0, "no prefix");
    vlp_tokenizer_encode_literal(t, text, len, ids, ROOM);
    vlp_tokenizer_encode_pair(t, (vlp_text){text, len / 2}, (vlp_text){text + len / 2, len / 3},
                              VLP_TRUNCATE_LONGEST, ids, types, 24);
    vlp_tokenizer_encode_padded(t, text, len, 20, ids, NULL);
    vlp_buf out = {0};
    VLP_ASSERT(vlp_tokenizer_decode(t, ids, 20, true, &out) == VLP_OK, "%s", vlp_error());
    vlp_buf_free(&out);
}

static void clean(const char *text, size_t len) {
    static char out[VLP_CLIP_TEXT_MAX];
    for (int how = VLP_CLIP_CLEAN_OPENAI; how <= VLP_CLIP_CLEAN_FAST; how++)
        VLP_ASSERT(vlp_utf8_valid(out, vlp_clip_cleaned((vlp_clip_clean)how, text, len, out)),
                   "cleaned text is not UTF-8");
}

static void reopen(const vlp_tokenizer *t) {
    vlp_tokenizer *again;
    clear(saved);
    VLP_ASSERT(vlp_tokenizer_save(t, saved) == VLP_OK, "%s", vlp_error());
    VLP_ASSERT(vlp_tokenizer_open(&again, saved) == VLP_OK, "%s", vlp_error());
    VLP_ASSERT(vlp_tokenizer_size(again) == vlp_tokenizer_size(t), "another size");
    vlp_tokenizer_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    if (!folder[0]) make_folders();
    clean((const char *)data, len);
    if (len < 2) return 0;
    const char *const *kind = kinds[data[0] % VLP_COUNT(kinds)];
    const uint8_t *text = data + 1, *end = memchr(text, 0, len - 1);
    size_t first = end ? (size_t)(end - text) : 0, skip = end ? first + 1 : 0;
    clear(folder);
    if (first) put_file(kind[0], text, first);
    put_file(kind[1], text + skip, len - 1 - skip);
    vlp_tokenizer *t;
    if (vlp_tokenizer_open(&t, folder) == VLP_OK) {
        use(t, (const char *)data, len);
        if (vlp_tokenizer_size(t) < 2000) reopen(t);
    } else {
        VLP_ASSERT(!t && vlp_error()[0], "a failure without words");
    }
    vlp_tokenizer_free(t);
    return 0;
}
