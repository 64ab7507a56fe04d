#include "text/word_counts.h"

#include "core/hash.h"

#include <string.h>

static vlp_word_count *find(const vlp_word_counts *c, const char *word, size_t len, size_t *slot) {
    size_t at = (size_t)vlp_hash_bytes(word, len).low & (c->slot_count - 1);
    for (; c->slots[at]; at = (at + 1) & (c->slot_count - 1)) {
        vlp_word_count *found = &c->words[c->slots[at] - 1];
        if (found->len == len && memcmp(c->bytes.data + found->offset, word, len) == 0)
            return found;
    }
    *slot = at;
    return NULL;
}

static vlp_status grow_slots(vlp_word_counts *c) {
    size_t count = c->slot_count ? 2 * c->slot_count : 1024;
    uint32_t *slots = vlp_alloc_zero(count, sizeof *slots);
    if (!slots) return VLP_ERR_MEMORY;
    vlp_free(c->slots);
    c->slots = slots;
    c->slot_count = count;
    for (size_t i = 0; i < c->size; i++) {
        const vlp_word_count *word = &c->words[i];
        size_t slot = 0;
        find(c, c->bytes.data + word->offset, word->len, &slot);
        slots[slot] = (uint32_t)i + 1;
    }
    return VLP_OK;
}

static vlp_status grow_words(vlp_word_counts *c) {
    if (c->size == INT32_MAX)
        return VLP_FAIL(VLP_ERR_LIMIT, "more than %d distinct words", INT32_MAX);
    size_t cap = c->cap ? 2 * c->cap : 1024;
    vlp_word_count *words = vlp_realloc(c->words, cap * sizeof *words);
    if (!words) return VLP_ERR_MEMORY;
    c->words = words;
    c->cap = cap;
    return VLP_OK;
}

vlp_status vlp_word_counts_add(vlp_word_counts *c, const char *word, size_t len, int64_t times) {
    if (2 * c->size >= c->slot_count) VLP_TRY(grow_slots(c));
    size_t slot = 0;
    vlp_word_count *found = find(c, word, len, &slot);
    if (found) {
        found->count += times;
        return VLP_OK;
    }
    if (c->size == c->cap) VLP_TRY(grow_words(c));
    size_t offset = c->bytes.len;
    VLP_TRY(vlp_buf_append(&c->bytes, word, len));
    c->words[c->size++] = (vlp_word_count){offset, len, times};
    c->slots[slot] = (uint32_t)c->size;
    return VLP_OK;
}

void vlp_word_counts_free(vlp_word_counts *c) {
    vlp_buf_free(&c->bytes);
    vlp_free(c->words);
    vlp_free(c->slots);
    *c = (vlp_word_counts){0};
}
