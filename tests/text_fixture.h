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

/* A tokenizer of these files; config may be NULL. */
static inline vlp_tokenizer *text_open(const char *vocab, const char *config) {
    text_folder folder = text_folder_make();
    text_folder_write(&folder, "vocab.txt", vocab, strlen(vocab));
    if (config) text_folder_write(&folder, "tokenizer_config.json", config, strlen(config));
    vlp_tokenizer *tokenizer;
    if (vlp_tokenizer_open(&tokenizer, folder.path) != VLP_OK) fail_msg("%s", vlp_error());
    text_folder_remove(&folder);
    return tokenizer;
}

#endif
