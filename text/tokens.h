/* What every text encoder reads. */
#ifndef VLP_TEXT_TOKENS_H
#define VLP_TEXT_TOKENS_H

#include <stdint.h>

/* A batch of token ids, on the host; outlives the step. */
typedef struct {
    int64_t batch, length;
    const int32_t *ids;            /* [B, L] */
    const int32_t *types;          /* [B, L] or NULL = all 0 */
    const uint8_t *attention_mask; /* [B, L], 1 = real token; NULL = all */
} vlp_tokens;

#endif
