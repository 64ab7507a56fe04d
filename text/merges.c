#include "text/merges.h"

#include <string.h>

typedef struct {
    size_t start; /* into symbols */
    int32_t len;
    int64_t count;
} word;

typedef struct {
    int32_t left, right;
    int64_t count;
    int64_t queued;  /* the largest count that the queue holds for it; 0 = not queued */
    uint32_t *words; /* that may contain it; some no longer do */
    uint32_t word_count, word_cap;
    bool touched;
} pair;

typedef struct {
    int64_t count;
    uint32_t pair;
} entry;

struct vlp_merges {
    int32_t *symbols;
    size_t symbol_count, symbol_cap;
    word *words;
    size_t word_count, word_cap;
    pair *pairs;
    size_t pair_count, pair_cap;
    uint32_t *slots; /* open hash of 1 + pair index, 0 = free */
    size_t slot_count;
    entry *queue; /* binary heap, the best first; counts may be out of date, never too small */
    size_t queue_size, queue_cap;
    uint32_t *touched; /* pairs whose count a merge changed */
    size_t touched_count, touched_cap;
};

/* Room for one more element of an array that doubles. */
static vlp_status room(void **array, size_t *cap, size_t needed, size_t element) {
    if (needed <= *cap) return VLP_OK;
    size_t grown = *cap ? 2 * *cap : 256;
    while (grown < needed) grown *= 2;
    void *data = vlp_realloc(*array, grown * element);
    if (!data) return VLP_ERR_MEMORY;
    *array = data;
    *cap = grown;
    return VLP_OK;
}

#define ROOM(array, cap, needed) room((void **)&(array), &(cap), (needed), sizeof *(array))

vlp_status vlp_merges_new(vlp_merges **out) {
    *out = vlp_alloc_zero(1, sizeof **out);
    return *out ? VLP_OK : VLP_ERR_MEMORY;
}

void vlp_merges_free(vlp_merges *m) {
    if (!m) return;
    for (size_t i = 0; i < m->pair_count; i++) vlp_free(m->pairs[i].words);
    vlp_free(m->symbols);
    vlp_free(m->words);
    vlp_free(m->pairs);
    vlp_free(m->slots);
    vlp_free(m->queue);
    vlp_free(m->touched);
    vlp_free(m);
}

/* ---- the queue ---- */

static bool before(const vlp_merges *m, entry a, entry b) {
    if (a.count != b.count) return a.count > b.count;
    const pair *p = &m->pairs[a.pair], *q = &m->pairs[b.pair];
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static vlp_status push(vlp_merges *m, uint32_t index) {
    VLP_TRY(ROOM(m->queue, m->queue_cap, m->queue_size + 1));
    pair *p = &m->pairs[index];
    entry added = {p->count, index};
    p->queued = p->count;
    size_t at = m->queue_size++;
    for (; at && before(m, added, m->queue[(at - 1) / 2]); at = (at - 1) / 2)
        m->queue[at] = m->queue[(at - 1) / 2];
    m->queue[at] = added;
    return VLP_OK;
}

static entry pop(vlp_merges *m) {
    entry best = m->queue[0], last = m->queue[--m->queue_size];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->queue_size) break;
        if (child + 1 < m->queue_size && before(m, m->queue[child + 1], m->queue[child])) child++;
        if (!before(m, m->queue[child], last)) break;
        m->queue[at] = m->queue[child];
        at = child;
    }
    m->queue[at] = last;
    return best;
}

/* ---- the pairs ---- */

static size_t slot_of(const vlp_merges *m, int32_t left, int32_t right) {
    uint64_t key = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(key >> 32) & (m->slot_count - 1);
    for (; m->slots[at]; at = (at + 1) & (m->slot_count - 1)) {
        const pair *p = &m->pairs[m->slots[at] - 1];
        if (p->left == left && p->right == right) break;
    }
    return at;
}

static vlp_status grow_slots(vlp_merges *m) {
    size_t count = m->slot_count ? 2 * m->slot_count : 1024;
    uint32_t *slots = vlp_alloc_zero(count, sizeof *slots);
    if (!slots) return VLP_ERR_MEMORY;
    vlp_free(m->slots);
    m->slots = slots;
    m->slot_count = count;
    for (size_t i = 0; i < m->pair_count; i++)
        slots[slot_of(m, m->pairs[i].left, m->pairs[i].right)] = (uint32_t)i + 1;
    return VLP_OK;
}

static vlp_status find_or_add(vlp_merges *m, int32_t left, int32_t right, uint32_t *index) {
    if (2 * m->pair_count >= m->slot_count) VLP_TRY(grow_slots(m));
    size_t slot = slot_of(m, left, right);
    if (!m->slots[slot]) {
        VLP_TRY(ROOM(m->pairs, m->pair_cap, m->pair_count + 1));
        m->pairs[m->pair_count++] = (pair){.left = left, .right = right};
        m->slots[slot] = (uint32_t)m->pair_count;
    }
    *index = m->slots[slot] - 1;
    return VLP_OK;
}

static vlp_status remember_word(pair *p, uint32_t index) {
    if (p->word_count && p->words[p->word_count - 1] == index) return VLP_OK;
    if (p->word_count == p->word_cap) {
        uint32_t cap = p->word_cap ? 2 * p->word_cap : 4;
        uint32_t *words = vlp_realloc(p->words, cap * sizeof *words);
        if (!words) return VLP_ERR_MEMORY;
        p->words = words;
        p->word_cap = cap;
    }
    p->words[p->word_count++] = index;
    return VLP_OK;
}

/* Adds sign * count of the word to each of its pairs. */
static vlp_status count_pairs(vlp_merges *m, uint32_t index, int sign) {
    const word *w = &m->words[index];
    const int32_t *symbols = m->symbols + w->start;
    for (int32_t i = 0; i + 1 < w->len; i++) {
        uint32_t at;
        VLP_TRY(find_or_add(m, symbols[i], symbols[i + 1], &at));
        pair *p = &m->pairs[at];
        p->count += sign * w->count;
        if (sign > 0) VLP_TRY(remember_word(p, index));
        if (p->touched) continue;
        VLP_TRY(ROOM(m->touched, m->touched_cap, m->touched_count + 1));
        m->touched[m->touched_count++] = at;
        p->touched = true;
    }
    return VLP_OK;
}

vlp_status vlp_merges_add_word(vlp_merges *m, const int32_t *symbols, int32_t n, int64_t count) {
    VLP_TRY(ROOM(m->words, m->word_cap, m->word_count + 1));
    VLP_TRY(ROOM(m->symbols, m->symbol_cap, m->symbol_count + (size_t)n));
    if (n) memcpy(m->symbols + m->symbol_count, symbols, (size_t)n * sizeof *symbols);
    m->words[m->word_count] = (word){m->symbol_count, n, count};
    m->symbol_count += (size_t)n;
    return count_pairs(m, (uint32_t)m->word_count++, 1);
}

vlp_status vlp_merges_best(vlp_merges *m, int64_t min_count, int32_t *left, int32_t *right,
                           bool *found) {
    for (size_t i = 0; i < m->touched_count; i++) {
        pair *p = &m->pairs[m->touched[i]];
        p->touched = false;
        if (p->count > p->queued) VLP_TRY(push(m, m->touched[i]));
    }
    m->touched_count = 0;
    *found = false;
    while (m->queue_size) {
        entry best = pop(m);
        pair *p = &m->pairs[best.pair];
        if (best.count != p->queued) continue; /* a newer entry stands for it */
        p->queued = 0;
        if (best.count == p->count) {
            if (p->count < min_count || p->count < 1) return VLP_OK;
            *left = p->left;
            *right = p->right;
            *found = true;
            return VLP_OK;
        }
        if (p->count > 0) VLP_TRY(push(m, best.pair));
    }
    return VLP_OK;
}

static bool contains(const vlp_merges *m, const word *w, int32_t left, int32_t right) {
    const int32_t *symbols = m->symbols + w->start;
    for (int32_t i = 0; i + 1 < w->len; i++)
        if (symbols[i] == left && symbols[i + 1] == right) return true;
    return false;
}

static void merge_word(vlp_merges *m, word *w, int32_t left, int32_t right, int32_t symbol) {
    int32_t *symbols = m->symbols + w->start, kept = 0;
    for (int32_t i = 0; i < w->len; i++) {
        bool here = symbols[i] == left && i + 1 < w->len && symbols[i + 1] == right;
        symbols[kept++] = here ? symbol : symbols[i];
        i += here;
    }
    w->len = kept;
}

vlp_status vlp_merges_apply(vlp_merges *m, int32_t left, int32_t right, int32_t symbol) {
    uint32_t at;
    VLP_TRY(find_or_add(m, left, right, &at));
    uint32_t *words = m->pairs[at].words, count = m->pairs[at].word_count;
    m->pairs[at].words = NULL;
    m->pairs[at].word_count = m->pairs[at].word_cap = 0;
    vlp_status status = VLP_OK;
    for (uint32_t i = 0; i < count; i++) {
        word *w = &m->words[words[i]];
        if (!contains(m, w, left, right)) continue;
        VLP_TRY_DONE(count_pairs(m, words[i], -1));
        merge_word(m, w, left, right, symbol);
        VLP_TRY_DONE(count_pairs(m, words[i], 1));
    }
done:
    vlp_free(words);
    return status;
}
