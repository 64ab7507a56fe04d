/* Encodes the bytes as text, and decodes them as ids, with a small vocabulary. */
#include "text/wordpiece_train.h"

#include <stdint.h>
#include <string.h>

static vlp_tokenizer *make(bool lower_case) {
    static const char text[] =
        "the cat the cats café café 世界 世界 don't don't ## ## ΟΔΟΣ οδος [a] [a]";
    vlp_wordpiece_trainer *trainer;
    vlp_wordpiece_train_options options = {.vocab_size = 100, .lower_case = lower_case};
    vlp_tokenizer *tokenizer = NULL;
    vlp_status status = vlp_wordpiece_trainer_new(&trainer, &options);
    if (status == VLP_OK) status = vlp_wordpiece_trainer_add(trainer, text, sizeof text - 1);
    if (status == VLP_OK) status = vlp_wordpiece_trainer_finish(trainer, &tokenizer);
    VLP_ASSERT(status == VLP_OK, "%s", vlp_error());
    vlp_wordpiece_trainer_free(trainer);
    return tokenizer;
}

static void encode(const vlp_tokenizer *tokenizer, const char *text, size_t len) {
    enum { ROOM = 512 };
    int32_t ids[ROOM], prefix[ROOM];
    uint8_t types[ROOM];
    int n = vlp_tokenizer_encode(tokenizer, text, len, true, ids, ROOM);
    VLP_ASSERT(n >= 2 && n <= ROOM && ids[n - 1] == 3, "%d ids", n);
    for (int i = 0; i < n; i++) VLP_ASSERT(vlp_tokenizer_token(tokenizer, ids[i]), "id %d", ids[i]);
    int shorter = vlp_tokenizer_encode(tokenizer, text, len, true, prefix, n / 2 + 1);
    VLP_ASSERT(shorter == n / 2 + 1 || n <= 2, "%d of %d ids", shorter, n);
    VLP_ASSERT(memcmp(ids, prefix, (size_t)(shorter - 1) * sizeof *ids) == 0, "not a prefix");
    vlp_tokenizer_encode_literal(tokenizer, text, len, ids, ROOM);
    size_t half = len / 2;
    for (int t = VLP_TRUNCATE_LONGEST; t <= VLP_TRUNCATE_SECOND; t++)
        vlp_tokenizer_encode_pair(tokenizer, (vlp_text){text, half},
                                  (vlp_text){text + half, len - half}, (vlp_truncate)t, ids, types,
                                  3 + (int)(len % 20));
}

static void decode(const vlp_tokenizer *tokenizer, const uint8_t *data, size_t len) {
    vlp_buf out = {0};
    int32_t ids[64];
    int n = (int)(len < 64 ? len : 64);
    for (int i = 0; i < n; i++) ids[i] = (int8_t)data[i];
    vlp_status status = vlp_tokenizer_decode(tokenizer, ids, n, len % 2, &out);
    VLP_ASSERT(status == VLP_OK || status == VLP_ERR_USAGE, "%s", vlp_error());
    vlp_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static vlp_tokenizer *tokenizers[2];
    for (int i = 0; i < 2; i++) {
        if (!tokenizers[i]) tokenizers[i] = make(i);
        encode(tokenizers[i], (const char *)data, len);
        decode(tokenizers[i], data, len);
    }
    return 0;
}
