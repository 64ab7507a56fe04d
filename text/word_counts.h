/* How often each distinct word occurs: memory grows with distinct words, not with text. */
#ifndef VLP_TEXT_WORD_COUNTS_H
#define VLP_TEXT_WORD_COUNTS_H

#include "core/memory.h"

typedef struct {
    size_t offset, len; /* into bytes */
    int64_t count;
} vlp_word_count;

/* {0} is empty and valid. */
typedef struct {
    vlp_buf bytes;
    vlp_word_count *words; /* in order of first occurrence */
    size_t size, cap;
    uint32_t *slots; /* open hash of 1 + index, 0 = free */
    size_t slot_count;
} vlp_word_counts;

vlp_status vlp_word_counts_add(vlp_word_counts *counts, const char *word, size_t len,
                               int64_t times);
void vlp_word_counts_free(vlp_word_counts *counts);

#endif
