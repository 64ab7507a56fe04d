/* What training asks of the loader beyond batches: sides, all captions, a file of pictures, blocks.
 */
#include "datasets_corpus.h"

#include "datasets/loader.h"
#include "datasets/pixel_file.h"

enum { N = 24, SIDE = 8, LENGTH = 8 };

typedef struct {
    corpus c;
    vlp_index *index;
    vlp_tokenizer *tokenizer;
    vlp_transform transform;
} bench;

/* The left half is black and the right half white; captions of even ones say so. */
static void half_picture(corpus *c, const char *name, int i) {
    vlp_image image = {0};
    vlp_buf png = {0};
    int side = 16 + i;
    assert_int_equal(vlp_image_resize_memory(&image, side, side), VLP_OK);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++)
            memset(image.pixels + 3 * (y * side + x), 2 * x < side ? 0 : 255, 3);
    assert_int_equal(vlp_image_encode_png(&image, &png), VLP_OK);
    corpus_bytes(c, name, png.data, png.len);
    vlp_buf_free(&png);
    vlp_image_free(&image);
}

static void bench_open(bench *b) {
    corpus_open(&b->c);
    corpus_text(&b->c, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nleft\nright\ndark\nno\n");
    for (int i = 0; i < N; i++) {
        char name[64];
        snprintf(name, sizeof name, "p/%02d.png", i);
        half_picture(&b->c, name, i);
        snprintf(name, sizeof name, "p/%02d.txt", i);
        corpus_text(&b->c, name, i % 2 ? "no dark\n" : "dark Left\nleft dark\n");
    }
    b->index = corpus_index(&b->c, "i.db");
    corpus_import(&b->c, b->index, "p", (vlp_import_options){.check = true});
    if (vlp_tokenizer_open(&b->tokenizer, corpus_path(&b->c, "vocab.txt")) != VLP_OK)
        fail_msg("%s", vlp_error());
    b->transform = vlp_transform_defaults(SIDE);
    b->transform.augment.flip = 0.5;
    b->transform.augment.scale_min = 0.9;
}

static void bench_close(bench *b) {
    vlp_tokenizer_free(b->tokenizer);
    vlp_index_free(b->index);
    corpus_close(&b->c);
}

static vlp_loader_options options_of(bench *b, vlp_rows_kind rows) {
    return (vlp_loader_options){.rows = rows,
                                .train = true,
                                .batch = 6,
                                .seed = 3,
                                .transform = &b->transform,
                                .tokenizer = b->tokenizer,
                                .text_length = LENGTH,
                                .threads = 2,
                                .slots = 2};
}

typedef struct {
    int said, mirrored, right, wrong; /* captions with a side; pictures mirrored among them */
    int free_mirrored;                /* pictures mirrored whose caption has none */
    vlp_hash pixels;
} outcome;

static bool says(const int32_t *ids, int32_t id) {
    for (int i = 0; i < LENGTH; i++)
        if (ids[i] == id) return true;
    return false;
}

static outcome run(bench *b, const vlp_loader_options *options, int batches) {
    enum { LEFT = 5, RIGHT = 6 };
    outcome o = {0};
    vlp_loader *loader;
    if (vlp_loader_open(&loader, b->index, options) != VLP_OK) fail_msg("%s", vlp_error());
    for (int k = 0; k < batches; k++) {
        const vlp_batch *batch;
        if (vlp_loader_next(loader, &batch) != VLP_OK) fail_msg("%s", vlp_error());
        size_t plane = 3 * SIDE * SIDE;
        o.pixels = vlp_hash_more(o.pixels, batch->pixels,
                                 (size_t)batch->count * plane * sizeof *batch->pixels);
        for (int j = 0; j < batch->count; j++) {
            const int32_t *ids = batch->token_ids + j * LENGTH;
            const float *row = batch->pixels + (size_t)j * plane + SIDE * SIDE / 2;
            bool left = says(ids, LEFT), right = says(ids, RIGHT), turned = row[0] > row[SIDE - 1];
            o.free_mirrored += !left && !right && turned;
            if (!left && !right) continue;
            o.said++;
            o.mirrored += turned;
            (*(turned == right ? &o.right : &o.wrong))++;
        }
        vlp_loader_release(loader);
    }
    vlp_loader_free(loader);
    return o;
}

static void test_datasets_training__sides_survive_mirroring(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    vlp_loader_options options = options_of(&b, VLP_ROWS_PAIRS);
    outcome keep = run(&b, &options, 40);
    assert_true(keep.said > 60 && keep.mirrored == 0 && keep.wrong == 0);
    assert_true(keep.free_mirrored > 30);
    options.sides = VLP_SIDES_MIRROR;
    outcome mirror = run(&b, &options, 40);
    assert_true(mirror.mirrored > 30 && mirror.wrong == 0);
    options.sides = VLP_SIDES_IGNORE;
    outcome ignore = run(&b, &options, 40);
    assert_true(ignore.mirrored > 30 && ignore.wrong == ignore.mirrored);
    bench_close(&b);
}

static void test_datasets_training__words_change_sides(void **state) {
    (void)state;
    static const struct {
        const char *text, *mirrored;
        bool has;
    } cases[] = {
        {"A dog on the left, a CAT on the RIGHT", "A dog on the right, a CAT on the LEFT", true},
        {"the Leftmost left-hand door", "the Rightmost right-hand door", true},
        {"leftover bright copyright cleft", "leftover bright copyright cleft", false},
    };
    vlp_buf out = {0};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        size_t len = strlen(cases[i].text);
        assert_int_equal(vlp_has_sides(cases[i].text, len), cases[i].has);
        assert_int_equal(vlp_mirror_sides(&out, cases[i].text, len), VLP_OK);
        assert_int_equal(out.len, strlen(cases[i].mirrored));
        assert_memory_equal(out.data, cases[i].mirrored, out.len);
    }
    vlp_buf_free(&out);
}

static void test_datasets_training__all_captions_come_once_an_epoch(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    vlp_loader_options options = options_of(&b, VLP_ROWS_CAPTIONS);
    vlp_loader *loader;
    if (vlp_loader_open(&loader, b.index, &options) != VLP_OK) fail_msg("%s", vlp_error());
    assert_int_equal(vlp_loader_rows(loader), N / 2 * 3);
    int64_t seen[N / 2 * 3] = {0};
    for (int k = 0; k < N / 2 * 3 / 6; k++) {
        const vlp_batch *batch;
        assert_int_equal(vlp_loader_next(loader, &batch), VLP_OK);
        for (int j = 0; j < batch->count; j++) {
            assert_in_range(batch->caption_ids[j], 1, N / 2 * 3);
            assert_int_equal(seen[batch->caption_ids[j] - 1]++, 0);
            assert_in_range(batch->image_ids[j], 1, N);
        }
        vlp_loader_release(loader);
    }
    vlp_loader_free(loader);
    bench_close(&b);
}

static bool count_built(int64_t done, int64_t total, void *user) {
    (void)total;
    *(int64_t *)user = done;
    return true;
}

static bool same(vlp_hash a, vlp_hash b) {
    return a.high == b.high && a.low == b.low;
}

static void test_datasets_training__the_picture_file_changes_nothing_but_time(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    char path[1100];
    snprintf(path, sizeof path, "%s", corpus_path(&b.c, "i.pixels"));
    vlp_loader_options options = options_of(&b, VLP_ROWS_PAIRS);
    vlp_hash bare = run(&b, &options, 8).pixels;
    int64_t built = 0;
    options.pixel_file = path;
    options.building = count_built;
    options.user = &built;
    assert_true(same(run(&b, &options, 8).pixels, bare));
    assert_int_equal(built, N);
    built = 0;
    assert_true(same(run(&b, &options, 8).pixels, bare)); /* mapped, not made */
    assert_int_equal(built, 0);
    /* a picture that changes has another hash: it is decoded again */
    corpus_png(&b.c, "p/03.png", 30, 30, 77);
    corpus_import(&b.c, b.index, "p", (vlp_import_options){.check = true});
    vlp_loader_options without = options;
    without.pixel_file = NULL;
    assert_true(same(run(&b, &options, 8).pixels, run(&b, &without, 8).pixels));
    assert_int_equal(built, N);
    /* damage: made anew; another program's file: refused */
    vlp_buf bytes = {0};
    assert_int_equal(vlp_file_read(path, 0, &bytes), VLP_OK);
    corpus_bytes(&b.c, "i.pixels", bytes.data, bytes.len / 2);
    built = 0;
    assert_true(same(run(&b, &options, 8).pixels, run(&b, &without, 8).pixels));
    assert_int_equal(built, N);
    corpus_text(&b.c, "i.pixels", "something that belongs to somebody else, and is long enough");
    vlp_loader *loader;
    assert_int_equal(vlp_loader_open(&loader, b.index, &options), VLP_ERR_FORMAT);
    vlp_buf_free(&bytes);
    bench_close(&b);
}

static void test_datasets_training__a_warm_loader_allocates_nothing(void **state) {
    (void)state;
    bench b;
    bench_open(&b);
    vlp_loader_options options = options_of(&b, VLP_ROWS_PAIRS);
    options.threads = 1;
    vlp_loader *loader;
    if (vlp_loader_open(&loader, b.index, &options) != VLP_OK) fail_msg("%s", vlp_error());
    int64_t warm = 0;
    for (int k = 0; k < 40; k++) {
        const vlp_batch *batch;
        assert_int_equal(vlp_loader_next(loader, &batch), VLP_OK);
        vlp_loader_release(loader);
        if (k == 19) warm = vlp_alloc_count();
    }
    vlp_loader_free(loader);
    int64_t after = vlp_alloc_count();
    assert_int_equal(after, warm);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_training__sides_survive_mirroring),
        cmocka_unit_test(test_datasets_training__words_change_sides),
        cmocka_unit_test(test_datasets_training__all_captions_come_once_an_epoch),
        cmocka_unit_test(test_datasets_training__the_picture_file_changes_nothing_but_time),
        cmocka_unit_test(test_datasets_training__a_warm_loader_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
