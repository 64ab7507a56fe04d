/* Opens the bytes as a model folder: up to the first NUL a tokenizer_config.json, the rest a
 * vocab.txt. What opens must encode and survive a round trip. */
#include "core/file.h"
#include "text/tokenizer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256];

static void put_file(const char *name, const uint8_t *data, size_t len) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb"); /* not the atomic write: no need to wait for the disk */
    VLP_ASSERT(file && fwrite(data, 1, len, file) == len && fclose(file) == 0, "%s", path);
}

static void remove_folder(void) {
    char path[512];
    static const char *const names[] = {"vocab.txt", "tokenizer_config.json"};
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void make_folder(void) {
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-fuzz-XXXXXX", root ? root : "/tmp");
    VLP_ASSERT(mkdtemp(folder), "%s", folder);
    atexit(remove_folder);
}

static void use(const vlp_tokenizer *tokenizer, const char *text, size_t len) {
    int32_t ids[256];
    int n = vlp_tokenizer_encode(tokenizer, text, len, true, ids, 256);
    vlp_buf out = {0};
    VLP_ASSERT(vlp_tokenizer_decode(tokenizer, ids, n, false, &out) == VLP_OK, "%s", vlp_error());
    vlp_buf_free(&out);
    for (int32_t id = 0; id < vlp_tokenizer_size(tokenizer); id++)
        VLP_ASSERT(vlp_tokenizer_find(tokenizer, vlp_tokenizer_token(tokenizer, id)) == id,
                   "token %d", id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    if (!folder[0]) make_folder();
    const uint8_t *end = len ? memchr(data, 0, len) : NULL;
    size_t config = end ? (size_t)(end - data) : 0, skip = end ? config + 1 : 0;
    char path[512];
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    if (config)
        put_file("tokenizer_config.json", data, config);
    else
        unlink(path);
    put_file("vocab.txt", data + skip, len - skip);
    vlp_tokenizer *tokenizer;
    if (vlp_tokenizer_open(&tokenizer, folder) == VLP_OK)
        use(tokenizer, (const char *)data, len);
    else
        VLP_ASSERT(!tokenizer && vlp_error()[0], "a failure without words");
    vlp_tokenizer_free(tokenizer);
    return 0;
}
