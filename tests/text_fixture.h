/* Temporary model folders for the tokenizer tests. Included after cmocka.h. */
#ifndef VLP_TESTS_TEXT_FIXTURE_H
#define VLP_TESTS_TEXT_FIXTURE_H

#include "core/file.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char path[256];
} text_folder;

static inline text_folder text_folder_make(void) {
    text_folder folder;
    const char *root = getenv("TMPDIR");
    snprintf(folder.path, sizeof folder.path, "%s/vlp-text-XXXXXX", root ? root : "/tmp");
    assert_non_null(mkdtemp(folder.path));
    return folder;
}

static inline void text_folder_write(const text_folder *folder, const char *name, const void *data,
                                     size_t len) {
    vlp_buf path = {0};
    assert_int_equal(vlp_path_join(&path, folder->path, name), VLP_OK);
    assert_int_equal(vlp_file_write(path.data, data, len), VLP_OK);
    vlp_buf_free(&path);
}

static inline void text_folder_put(const text_folder *folder, const char *name, const char *text) {
    text_folder_write(folder, name, text, strlen(text));
}

static inline vlp_tokenizer *text_folder_open(const text_folder *folder) {
    vlp_tokenizer *tokenizer;
    if (vlp_tokenizer_open(&tokenizer, folder->path) != VLP_OK) fail_msg("%s", vlp_error());
    return tokenizer;
}

/* Opening the folder fails with these words. */
static inline void text_folder_refused(const text_folder *folder, const char *says) {
    vlp_tokenizer *tokenizer;
    assert_int_not_equal(vlp_tokenizer_open(&tokenizer, folder->path), VLP_OK);
    assert_null(tokenizer);
    if (!strstr(vlp_error(), says)) fail_msg("\"%s\" does not say \"%s\"", vlp_error(), says);
}

static inline void text_folder_remove(const text_folder *folder) {
    static const char *const names[] = {"vocab.txt",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "vocab.json",
                                        "config.json",
                                        "merges.txt",
                                        "tokenizer.json",
                                        "spiece.model",
                                        "bpe_simple_vocab_16e6.txt",
                                        "bpe_simple_vocab_16e6.txt.gz"};
    char path[512];
    for (size_t i = 0; i < VLP_COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, names[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder->path), 0);
}

/* Saved and opened again. */
static inline vlp_tokenizer *text_reopened(const vlp_tokenizer *tokenizer) {
    text_folder folder = text_folder_make();
    assert_int_equal(vlp_tokenizer_save(tokenizer, folder.path), VLP_OK);
    vlp_tokenizer *again = text_folder_open(&folder);
    text_folder_remove(&folder);
    return again;
}

/* The tokens of text joined by '|' equal `expected`. */
static inline void text_check_len(const vlp_tokenizer *tokenizer, bool special, const char *text,
                                  size_t len, const char *expected) {
    int32_t ids[256];
    int n = vlp_tokenizer_encode(tokenizer, text, len, special, ids, 256);
    vlp_buf joined = {0};
    assert_int_equal(vlp_buf_puts(&joined, ""), VLP_OK);
    for (int i = 0; i < n; i++)
        assert_int_equal(
            vlp_buf_printf(&joined, "%s%s", i ? "|" : "", vlp_tokenizer_token(tokenizer, ids[i])),
            VLP_OK);
    assert_string_equal(joined.data, expected);
    vlp_buf_free(&joined);
}

static inline void text_check(const vlp_tokenizer *tokenizer, bool special, const char *text,
                              const char *expected) {
    text_check_len(tokenizer, special, text, strlen(text), expected);
}

/* What is saved has the same tokens and gives the same ids. */
static inline void text_check_saved(const vlp_tokenizer *tokenizer) {
    static const char text[] = "Low lower &amp; <mask> été<|endoftext|>";
    int32_t first[64], second[64];
    vlp_tokenizer *again = text_reopened(tokenizer);
    vlp_hash a = vlp_tokenizer_hash(tokenizer), b = vlp_tokenizer_hash(again);
    assert_true(a.high == b.high && a.low == b.low);
    int n = vlp_tokenizer_encode(tokenizer, text, strlen(text), true, first, 64);
    assert_int_equal(vlp_tokenizer_encode(again, text, strlen(text), true, second, 64), n);
    assert_memory_equal(first, second, (size_t)n * sizeof *first);
    vlp_tokenizer_free(again);
}

static inline void text_check_allocates_nothing(const vlp_tokenizer *tokenizer) {
    static const char text[] = "Low &amp; lower Café 世界 <mask> ΟΔΟΣ";
    int32_t ids[128];
    int64_t before = vlp_alloc_count();
    vlp_tokenizer_encode(tokenizer, text, strlen(text), true, ids, 128);
    assert_int_equal(vlp_alloc_count(), before);
}

/* A tokenizer of these files; config may be NULL. */
static inline vlp_tokenizer *text_open(const char *vocab, const char *config) {
    text_folder folder = text_folder_make();
    text_folder_put(&folder, "vocab.txt", vocab);
    if (config) text_folder_put(&folder, "tokenizer_config.json", config);
    vlp_tokenizer *tokenizer = text_folder_open(&folder);
    text_folder_remove(&folder);
    return tokenizer;
}

#endif
