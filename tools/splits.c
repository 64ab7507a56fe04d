/* Duplicates, groups and splits.
 *
 * A drawing is held out with everything that looks like it or belongs to its series: union-find
 * over (1) equal series keys and (2) near-duplicates by dHash. Only small groups are held out, and
 * one picture stands for each, with a caption that no other held-out picture has: with two drawings
 * of one caption no model could know which one is meant. The other pictures of a held-out group are
 * in no split. */
#include "core/rng.h"
#include "tools/picture.h"

#include <stdlib.h>
#include <string.h>

enum { NEAR_BITS = 4, NEAR_TONE = 24, SMALL_GROUP = 4, MAX_HELD_OUT_WORDS = 12 };

static int root_of(corpus_list *list, int i) {
    while (list->item[i].group != i) {
        list->item[i].group = list->item[list->item[i].group].group;
        i = list->item[i].group;
    }
    return i;
}

static void join(corpus_list *list, int a, int b) {
    a = root_of(list, a);
    b = root_of(list, b);
    list->item[a > b ? a : b].group = a > b ? b : a; /* the smallest index is the root */
}

static bool is_live(const corpus_picture *picture) {
    return !picture->skip && strcmp(picture->source, "emojione") != 0 &&
           strcmp(picture->source, "emojione-unseen") != 0;
}

typedef struct {
    const corpus_picture *picture;
    int index;
} entry;

static int by_content(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const vlp_hash *p = &x->picture->content, *q = &y->picture->content;
    if (p->high != q->high) return p->high < q->high ? -1 : 1;
    if (p->low != q->low) return p->low < q->low ? -1 : 1;
    return x->index - y->index;
}

static int by_series(const void *a, const void *b) {
    const entry *x = a, *y = b;
    const char *p = x->picture->series, *q = y->picture->series;
    int order = strcmp(p ? p : "", q ? q : "");
    return order ? order : x->index - y->index;
}

/* The first of equal pictures stays and takes the others' captions. */
static vlp_status merge_duplicates(corpus_list *list, entry *order, int count, int *duplicates) {
    qsort(order, (size_t)count, sizeof *order, by_content);
    for (int i = 1, first = 0; i < count; i++) {
        corpus_picture *kept = &list->item[order[first].index], *here = &list->item[order[i].index];
        if (kept->content.high != here->content.high || kept->content.low != here->content.low) {
            first = i;
            continue;
        }
        if (kept->fixed || here->fixed) { /* emoji keep their places */
            first = i;
            continue;
        }
        for (int k = 0; k < here->captions; k++) VLP_TRY(corpus_caption(kept, here->caption[k]));
        kept->eligible = kept->eligible && here->eligible;
        here->skip = "duplicate";
        (*duplicates)++;
    }
    return VLP_OK;
}

static void join_series(corpus_list *list, entry *order, int count) {
    qsort(order, (size_t)count, sizeof *order, by_series);
    for (int i = 1; i < count; i++) {
        const char *here = order[i].picture->series, *before = order[i - 1].picture->series;
        if (here && before && strcmp(here, before) == 0)
            join(list, order[i].index, order[i - 1].index);
    }
}

static int bits(uint64_t x) {
    return __builtin_popcountll(x);
}

/* Colours may differ in a recoloured drawing, but only so far that plain shapes stay apart. */
static bool looks_alike(const corpus_picture *a, const corpus_picture *b) {
    int across = bits(a->gradient[0] ^ b->gradient[0]);
    if (across > NEAR_BITS) return false;
    int down = bits(a->gradient[1] ^ b->gradient[1]), tone = 0;
    if (down > NEAR_BITS) return false;
    int edges = bits(a->gradient[0]) + bits(a->gradient[1]);
    for (int i = 0; i < 48; i++) tone += abs(a->tone[i] - b->tone[i]);
    return edges >= 16 || tone <= NEAR_TONE * 48 / 2;
}

static void join_lookalikes(corpus_list *list, const entry *order, int count) {
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++) {
            if (looks_alike(order[i].picture, order[k].picture))
                join(list, order[i].index, order[k].index);
        }
    }
}

typedef struct {
    int first, size; /* index of the group's picture that stands for it, pictures in it */
    bool may;        /* all pictures are eligible drawings */
    uint64_t draw;   /* place in the shuffled order */
} group_info;

static int words_in(const char *text) {
    int n = 1;
    for (; *text; text++) n += *text == ' ';
    return n;
}

static void gather(corpus_list *list, group_info *groups, corpus_split_counts *counts) {
    for (int i = 0; i < list->count; i++) {
        const corpus_picture *picture = &list->item[i];
        if (!is_live(picture)) continue;
        int root = root_of(list, i);
        group_info *g = &groups[root];
        if (g->size == 0) {
            vlp_rng rng = vlp_rng_at(1, VLP_RNG_SPLIT, 0, picture->content.low);
            *g = (group_info){.first = i, .may = true, .draw = vlp_rng_u64(&rng)};
            counts->groups++;
        }
        g->size++;
        g->may = g->may && picture->eligible && !picture->fixed &&
                 words_in(picture->caption[0]) <= MAX_HELD_OUT_WORDS;
        if (g->size > counts->largest_group) counts->largest_group = g->size;
    }
}

static int by_draw(const void *a, const void *b) {
    const group_info *x = *(const group_info *const *)a, *y = *(const group_info *const *)b;
    if (x->draw != y->draw) return x->draw < y->draw ? -1 : 1;
    return x->first - y->first;
}

static bool is_taken(const corpus_list *list, const int *held, int count, const char *caption) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list->item[held[i]].caption[0], caption) == 0) return true;
    }
    return false;
}

/* Adds `sign` for each word of the group's captions; the table maps a word's hash to a count. */
enum { WORD_SLOTS = 1 << 17 };

static int *word_slot(int *table, const char *word, size_t len) {
    vlp_hash hash = vlp_hash_bytes(word, len);
    return &table[hash.low % WORD_SLOTS];
}

static void count_words(int *table, const corpus_picture *picture, int sign) {
    for (int k = 0; k < picture->captions; k++) {
        const char *p = picture->caption[k];
        for (p += strspn(p, " ,"); *p; p += strspn(p, " ,")) {
            size_t len = strcspn(p, " ,");
            *word_slot(table, p, len) += sign;
            p += len;
        }
    }
}

/* Whether the trained captions have every word of the picture's caption. */
static bool words_are_trained(int *table, const corpus_picture *picture) {
    const char *p = picture->caption[0];
    for (p += strspn(p, " ,"); *p; p += strspn(p, " ,")) {
        size_t len = strcspn(p, " ,");
        if (*word_slot(table, p, len) <= 0) return false;
        p += len;
    }
    return true;
}

static void count_group(corpus_list *list, int *table, int root, int sign) {
    for (int i = root; i < list->count; i++) { /* a root is its group's smallest index */
        if (is_live(&list->item[i]) && root_of(list, i) == root)
            count_words(table, &list->item[i], sign);
    }
}

/* Takes groups in the shuffled order for test, then val; everything else trains. A drawing is held
 * out only while training keeps each word of its caption, and of those held out before it. */
static vlp_status hold_out(corpus_list *list, group_info **order, int count, int held_out,
                           int *held) {
    int taken = 0;
    int *table = vlp_alloc_zero(WORD_SLOTS, sizeof *table);
    if (!table) return VLP_ERR_MEMORY;
    for (int i = 0; i < list->count; i++) {
        const corpus_picture *p = &list->item[i];
        if (is_live(p) && !(p->split && strcmp(p->split, "test") == 0)) count_words(table, p, 1);
    }
    for (int i = 0; i < count && taken < 2 * held_out; i++) {
        corpus_picture *picture = &list->item[order[i]->first];
        int root = root_of(list, order[i]->first);
        bool fits = !is_taken(list, held, taken, picture->caption[0]);
        count_group(list, table, root, -1);
        fits = fits && words_are_trained(table, picture);
        for (int k = 0; k < taken && fits; k++)
            fits = words_are_trained(table, &list->item[held[k]]);
        if (!fits) {
            count_group(list, table, root, 1);
            continue;
        }
        held[taken] = order[i]->first;
        picture->split = taken < held_out ? "test" : "val";
        while (picture->captions > 1) vlp_free(picture->caption[--picture->captions]);
        taken++;
    }
    vlp_free(table);
    return VLP_OK;
}

static void settle(corpus_list *list, const int *held, int count, corpus_split_counts *counts) {
    bool *out = vlp_alloc_zero((size_t)list->count, sizeof *out);
    if (!out) return;
    for (int i = 0; i < count; i++) {
        if (held[i] >= 0) out[root_of(list, held[i])] = true;
    }
    for (int i = 0; i < list->count; i++) {
        corpus_picture *picture = &list->item[i];
        if (picture->skip || picture->split) continue;
        if (out[root_of(list, i)]) {
            picture->skip = "variant of a held-out drawing";
            counts->spare++;
        } else {
            picture->split = "train";
        }
    }
    vlp_free(out);
}

vlp_status corpus_split(corpus_list *list, int held_out, corpus_split_counts *counts) {
    size_t n = (size_t)list->count;
    vlp_status status = VLP_ERR_MEMORY;
    entry *order = vlp_alloc_zero(n, sizeof *order);
    group_info *groups = vlp_alloc_zero(n, sizeof *groups);
    group_info **candidates = vlp_alloc_zero(n, sizeof *candidates);
    int *held = vlp_alloc_zero(2 * (size_t)held_out + 1, sizeof *held);
    int live = 0;
    *counts = (corpus_split_counts){0};
    if (!order || !groups || !candidates || !held) goto done;
    for (int i = 0; i < list->count; i++) {
        list->item[i].group = i;
        if (is_live(&list->item[i])) order[live++] = (entry){&list->item[i], i};
    }
    VLP_TRY_DONE(merge_duplicates(list, order, live, &counts->duplicates));
    live = 0;
    for (int i = 0; i < list->count; i++) {
        if (is_live(&list->item[i])) order[live++] = (entry){&list->item[i], i};
    }
    join_series(list, order, live);
    join_lookalikes(list, order, live);
    gather(list, groups, counts);
    for (int i = 0; i < list->count; i++) {
        if (groups[i].size && groups[i].may && groups[i].size <= SMALL_GROUP)
            candidates[counts->candidates++] = &groups[i];
    }
    qsort(candidates, (size_t)counts->candidates, sizeof *candidates, by_draw);
    for (int i = 0; i < 2 * held_out; i++) held[i] = -1;
    VLP_TRY_DONE(hold_out(list, candidates, counts->candidates, held_out, held));
    settle(list, held, 2 * held_out, counts);
    for (int i = 0; i < list->count; i++) list->item[i].group = root_of(list, i);
    status = VLP_OK;
done:
    vlp_free(order);
    vlp_free(groups);
    vlp_free(candidates);
    vlp_free(held);
    return status;
}
