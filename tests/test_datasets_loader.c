#include "datasets_corpus.h"

#include "datasets/eval_data.h"
#include "datasets/loader.h"

enum { N_GOOD = 23, SIDE = 16, LENGTH = 8 };

static vlp_tokenizer *open_tokenizer(corpus *c) {
    corpus_text(c, "vocab.txt",
                "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\npicture\nnumber\nview\n"
                "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    vlp_tokenizer *tokenizer;
    if (vlp_tokenizer_open(&tokenizer, corpus_path(c, "vocab.txt")) != VLP_OK)
        fail_msg("%s", vlp_error());
    return tokenizer;
}

/* Good pictures of several sizes under `folder`, two captions each. */
static void good_pictures_named(corpus *c, const char *folder, bool backwards) {
    for (int i = 0; i < N_GOOD; i++) {
        char name[64], text[64];
        snprintf(name, sizeof name, "%s/p%02d.png", folder, backwards ? N_GOOD - 1 - i : i);
        corpus_png(c, name, 20 + 3 * i, 60 - i, (uint64_t)i);
        snprintf(name, sizeof name, "%s/p%02d.txt", folder, backwards ? N_GOOD - 1 - i : i);
        snprintf(text, sizeof text, "picture %d\nview %d %d\n", i, i % 10, i / 10);
        corpus_text(c, name, text);
    }
}

static void good_pictures(corpus *c, const char *folder) {
    good_pictures_named(c, folder, false);
}

/* Files that pass for images until they are decoded, or do not even that. */
static void bad_pictures(corpus *c, const char *folder) {
    vlp_buf png = {0};
    char name[64];
    snprintf(name, sizeof name, "%s/p00.png", folder);
    assert_int_equal(vlp_file_read(corpus_path(c, name), 0, &png), VLP_OK);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "%s/o%02d.png", folder, i);
        corpus_bytes(c, name, png.data, png.len / 2 + (size_t)i);
        snprintf(name, sizeof name, "%s/q%02d.png", folder, i);
        corpus_bytes(c, name, png.data, (size_t)i * 2);
        snprintf(name, sizeof name, "%s/q%02d.txt", folder, i);
        corpus_text(c, name, "a bad one");
    }
    vlp_buf_free(&png);
}

static vlp_index *verified(corpus *c, const char *folder, const char *db,
                           vlp_verify_report *report) {
    vlp_index *index = corpus_index(c, db);
    corpus_import(c, index, folder, (vlp_import_options){0});
    *report = (vlp_verify_report){0};
    if (vlp_index_verify(index, &(vlp_verify_options){.threads = 2}, report) != VLP_OK)
        fail_msg("%s", vlp_error());
    return index;
}

typedef struct {
    vlp_transform transform;
    vlp_tokenizer *tokenizer;
} tools;

static tools open_tools(corpus *c) {
    tools t = {vlp_transform_defaults(SIDE), open_tokenizer(c)};
    t.transform.augment.flip = 0.5;
    return t;
}

static vlp_loader_options train_options(const tools *t) {
    return (vlp_loader_options){.train = true,
                                .batch = 5,
                                .seed = 42,
                                .transform = &t->transform,
                                .tokenizer = t->tokenizer,
                                .text_length = LENGTH,
                                .threads = 1,
                                .slots = 2};
}

/* The good pictures in an index, and what a loader of them needs. */
typedef struct {
    corpus c;
    vlp_index *index;
    vlp_verify_report report;
    tools t;
} good;

static vlp_loader_options open_good(good *g) {
    corpus_open(&g->c);
    good_pictures(&g->c, "p");
    g->index = verified(&g->c, "p", "i.db", &g->report);
    g->t = open_tools(&g->c);
    return train_options(&g->t);
}

static void close_good(good *g) {
    vlp_tokenizer_free(g->t.tokenizer);
    vlp_index_free(g->index);
    corpus_close(&g->c);
}

/* A hash of everything but row ids in `n` batches. */
static vlp_hash contents(const vlp_index *index, const vlp_loader_options *options, int n) {
    vlp_loader *loader;
    if (vlp_loader_open(&loader, index, options) != VLP_OK) fail_msg("%s", vlp_error());
    vlp_hash hash = {0, 0};
    for (int k = 0; k < n; k++) {
        const vlp_batch *b;
        if (vlp_loader_next(loader, &b) != VLP_OK) fail_msg("%s", vlp_error());
        if (!b) break;
        size_t count = (size_t)b->count;
        hash = vlp_hash_more(hash, b->pixels, count * 3 * SIDE * SIDE * sizeof(float));
        hash = vlp_hash_more(hash, b->token_ids, count * LENGTH * sizeof(int32_t));
        hash = vlp_hash_more(hash, b->attention_mask, count * LENGTH);
        hash = vlp_hash_more(hash, b->caption_groups, count * sizeof(int64_t));
        vlp_loader_release(loader);
    }
    vlp_loader_free(loader);
    return hash;
}

static void assert_same(vlp_hash a, vlp_hash b) {
    assert_true(a.high == b.high && a.low == b.low);
}

static void test_datasets_loader__threads_slots_and_cache_change_nothing(void **state) {
    (void)state;
    good g;
    vlp_loader_options options = open_good(&g);
    assert_int_equal(g.report.good, N_GOOD);
    vlp_hash one = contents(g.index, &options, 20);
    for (int threads = 2; threads <= 3; threads++) {
        options.threads = threads;
        options.slots = threads + 1;
        assert_same(one, contents(g.index, &options, 20));
    }
    options.cache_bytes = 1 << 20;
    assert_same(one, contents(g.index, &options, 20));
    options.cache_bytes = 10000; /* holds only some */
    assert_same(one, contents(g.index, &options, 20));
    options.seed = 43;
    vlp_hash other = contents(g.index, &options, 20);
    assert_true(other.low != one.low);
    close_good(&g);
}

static void test_datasets_loader__bad_files_change_nothing(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    good_pictures(&c, "clean");
    good_pictures_named(&c, "dirty", true); /* other names, so imported in another order */
    bad_pictures(&c, "dirty");
    vlp_verify_report report;
    vlp_index *clean = verified(&c, "clean", "clean.db", &report);
    assert_int_equal(report.bad, 0);
    vlp_index *dirty = verified(&c, "dirty", "dirty.db", &report);
    assert_int_equal(report.good, N_GOOD);
    assert_int_equal(report.bad, 10);
    assert_int_equal(corpus_count(dirty, "SELECT count(*) FROM skipped"), 10);
    tools t = open_tools(&c);
    vlp_loader_options options = train_options(&t);
    assert_same(contents(clean, &options, 20), contents(dirty, &options, 20));
    vlp_tokenizer_free(t.tokenizer);
    vlp_index_free(clean);
    vlp_index_free(dirty);
    corpus_close(&c);
}

static void test_datasets_loader__resumes_at_a_cursor_and_seeks(void **state) {
    (void)state;
    good g;
    vlp_loader_options options = open_good(&g);
    options.threads = 2;
    vlp_loader *whole, *resumed;
    assert_int_equal(vlp_loader_open(&whole, g.index, &options), VLP_OK);
    const vlp_batch *a, *b;
    for (int k = 0; k < 7; k++) {
        assert_int_equal(vlp_loader_next(whole, &a), VLP_OK);
        options.cursor = a->next_cursor;
        vlp_loader_release(whole);
    }
    assert_int_equal(options.cursor, 35);
    assert_int_equal(vlp_loader_open(&resumed, g.index, &options), VLP_OK);
    for (int k = 0; k < 5; k++) {
        assert_int_equal(vlp_loader_next(whole, &a), VLP_OK);
        assert_int_equal(vlp_loader_next(resumed, &b), VLP_OK);
        assert_int_equal(a->cursor, b->cursor);
        assert_memory_equal(a->pixels, b->pixels, 5 * 3 * SIDE * SIDE * sizeof(float));
        assert_memory_equal(a->token_ids, b->token_ids, 5 * LENGTH * sizeof(int32_t));
        assert_memory_equal(a->image_ids, b->image_ids, 5 * sizeof(int64_t));
        vlp_loader_release(whole);
        vlp_loader_release(resumed);
    }
    vlp_loader_seek(whole, 35);
    vlp_loader_seek(resumed, 35);
    assert_int_equal(vlp_loader_next(whole, &a), VLP_OK);
    assert_int_equal(a->cursor, 35);
    vlp_loader_free(whole);
    vlp_loader_free(resumed);
    close_good(&g);
}

/* Two ranks with B = 5 see together what one rank sees with 10. */
static void test_datasets_loader__ranks_share_one_order(void **state) {
    (void)state;
    good g;
    vlp_loader_options options = open_good(&g);
    vlp_loader *loaders[3];
    options.batch = 10;
    assert_int_equal(vlp_loader_open(&loaders[2], g.index, &options), VLP_OK);
    options.batch = 5;
    options.world = 2;
    for (options.rank = 0; options.rank < 2; options.rank++)
        assert_int_equal(vlp_loader_open(&loaders[options.rank], g.index, &options), VLP_OK);
    for (int k = 0; k < 6; k++) {
        const vlp_batch *b[3];
        for (int r = 0; r < 3; r++) assert_int_equal(vlp_loader_next(loaders[r], &b[r]), VLP_OK);
        assert_memory_equal(b[0]->image_ids, b[2]->image_ids, 5 * sizeof(int64_t));
        assert_memory_equal(b[1]->image_ids, b[2]->image_ids + 5, 5 * sizeof(int64_t));
        assert_memory_equal(b[1]->token_ids, b[2]->token_ids + 5 * LENGTH,
                            5 * LENGTH * sizeof(int32_t));
        assert_int_equal(b[0]->next_cursor, b[2]->next_cursor);
        for (int r = 0; r < 3; r++) vlp_loader_release(loaders[r]);
    }
    for (int r = 0; r < 3; r++) vlp_loader_free(loaders[r]);
    close_good(&g);
}

static void count_skip(const char *path, const char *reason, void *user) {
    assert_non_null(strstr(path, ".png"));
    assert_true(reason[0] != '\0');
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

static void test_datasets_loader__a_file_lost_later_is_named_and_replaced(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    good_pictures(&c, "p");
    vlp_verify_report report;
    vlp_index *index = verified(&c, "p", "i.db", &report);
    tools t = open_tools(&c);
    corpus_text(&c, "p/p03.png", "no longer an image");
    assert_int_equal(unlink(corpus_path(&c, "p/p07.png")), 0);
    int skips = 0;
    vlp_loader_options options = train_options(&t);
    options.skipped = count_skip;
    options.user = &skips;
    options.threads = 1;
    vlp_hash one = contents(index, &options, 12);
    assert_int_equal(skips, 2);
    options.threads = 3;
    assert_same(one, contents(index, &options, 12));
    assert_int_equal(skips, 4);
    options.train = false;
    int64_t lost = 0, seen = 0;
    vlp_loader *loader;
    const vlp_batch *b;
    assert_int_equal(vlp_loader_open(&loader, index, &options), VLP_OK);
    while (vlp_loader_next(loader, &b) == VLP_OK && b) {
        for (int i = 0; i < b->count; i++) lost += b->image_ids[i] == -1;
        seen += b->count;
        vlp_loader_release(loader);
    }
    assert_int_equal(lost, 2);
    assert_int_equal(seen, N_GOOD);
    assert_int_equal(vlp_loader_skipped(loader), 2);
    vlp_loader_free(loader);
    vlp_tokenizer_free(t.tokenizer);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_loader__batch_larger_than_corpus_and_batch_one(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "p/a.png", 20, 20, 1);
    corpus_png(&c, "p/twin.png", 20, 20, 1);
    corpus_text(&c, "p/a.txt", "Picture 1.");
    corpus_text(&c, "p/twin.txt", "picture 1");
    vlp_verify_report report;
    vlp_index *index = verified(&c, "p", "i.db", &report);
    tools t = open_tools(&c);
    vlp_loader_options options = train_options(&t);
    vlp_loader *loader;
    const vlp_batch *b;
    assert_int_equal(vlp_loader_open(&loader, index, &options), VLP_OK);
    assert_int_equal(vlp_loader_next(loader, &b), VLP_OK);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(b->groups[i], b->groups[0]);
        assert_int_equal(b->caption_groups[i], b->caption_groups[0]);
    }
    assert_int_not_equal(b->image_ids[0], b->image_ids[1]);
    vlp_loader_free(loader);
    options.batch = 1;
    assert_int_equal(vlp_loader_open(&loader, index, &options), VLP_OK);
    assert_int_equal(vlp_loader_next(loader, &b), VLP_OK);
    assert_int_equal(b->count, 1);
    vlp_loader_free(loader);
    vlp_tokenizer_free(t.tokenizer);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_loader__warm_batches_allocate_nothing(void **state) {
    (void)state;
    good g;
    vlp_loader_options options = open_good(&g);
    vlp_loader *loader;
    const vlp_batch *b;
    assert_int_equal(vlp_loader_open(&loader, g.index, &options), VLP_OK);
    int64_t before = 0, after = 0;
    for (int k = 0; k < 60; k++) {
        assert_int_equal(vlp_loader_next(loader, &b), VLP_OK);
        if (k == 30) before = vlp_alloc_count();
        if (k == 59) after = vlp_alloc_count();
        vlp_loader_release(loader);
    }
    assert_int_equal(before, after);
    vlp_loader_free(loader);
    close_good(&g);
}

static void test_datasets_loader__evaluation_lists_every_caption(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    good_pictures(&c, "p");
    vlp_verify_report report;
    vlp_index *index = verified(&c, "p", "i.db", &report);
    tools t = open_tools(&c);
    vlp_eval_data rows;
    assert_int_equal(vlp_eval_data_open(&rows, index, "train", NULL, 0), VLP_OK);
    assert_int_equal(rows.n_images, N_GOOD);
    assert_int_equal(rows.n_captions, 2 * N_GOOD);
    for (int64_t i = 0; i < rows.n_captions; i++)
        assert_in_range(rows.caption_images[i], 0, rows.n_images - 1);
    vlp_loader_options options = train_options(&t);
    options.train = false;
    options.rows = VLP_ROWS_TEXTS;
    vlp_loader *loader;
    const vlp_batch *b;
    assert_int_equal(vlp_loader_open(&loader, index, &options), VLP_OK);
    int64_t captions = 0;
    while (vlp_loader_next(loader, &b) == VLP_OK && b) {
        assert_null(b->pixels);
        captions += b->count;
        vlp_loader_release(loader);
    }
    assert_int_equal(captions, 2 * N_GOOD);
    vlp_loader_free(loader);
    options.split = "test";
    assert_int_equal(vlp_loader_open(&loader, index, &options), VLP_ERR_NOT_FOUND);
    vlp_eval_data_close(&rows);
    vlp_tokenizer_free(t.tokenizer);
    vlp_index_free(index);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_loader__threads_slots_and_cache_change_nothing),
        cmocka_unit_test(test_datasets_loader__bad_files_change_nothing),
        cmocka_unit_test(test_datasets_loader__resumes_at_a_cursor_and_seeks),
        cmocka_unit_test(test_datasets_loader__ranks_share_one_order),
        cmocka_unit_test(test_datasets_loader__a_file_lost_later_is_named_and_replaced),
        cmocka_unit_test(test_datasets_loader__batch_larger_than_corpus_and_batch_one),
        cmocka_unit_test(test_datasets_loader__warm_batches_allocate_nothing),
        cmocka_unit_test(test_datasets_loader__evaluation_lists_every_caption),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
