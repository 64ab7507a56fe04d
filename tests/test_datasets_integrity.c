/* What an index knows of its pictures' content: moves, copies, look-alikes, cleaned captions. */
#include "datasets_corpus.h"

#include "datasets/caption.h"
#include "datasets/catalogue.h"
#include "datasets/fulltext.h"
#include "datasets/look.h"

#include <sys/stat.h>

static void move_file(corpus *c, const char *from, const char *to) {
    char old[1100];
    snprintf(old, sizeof old, "%s", corpus_path(c, from));
    assert_int_equal(rename(old, corpus_path(c, to)), 0);
}

static void test_datasets_integrity__moved_files_keep_rows_and_embeddings(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "p/a.png", 8, 8, 1);
    corpus_png(&c, "p/b.png", 9, 8, 2);
    corpus_text(&c, "p/a.txt", "words of a");
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "p", (vlp_import_options){0});
    int64_t a = corpus_count(index, "SELECT id FROM images WHERE path LIKE '%a.png'");
    float vector[2] = {1, 0};
    assert_int_equal(vlp_catalogue_put(index, "m", &a, vector, 1, 2), VLP_OK);
    assert_int_equal(vlp_make_folder(corpus_path(&c, "p/sub")), VLP_OK);
    move_file(&c, "p/a.png", "p/sub/z.png");
    move_file(&c, "p/a.txt", "p/sub/z.txt");
    vlp_import_report r = corpus_import(&c, index, "p", (vlp_import_options){0});
    assert_int_equal(r.moved, 1);
    assert_int_equal(r.added + r.changed + r.removed + r.gone, 0);
    assert_int_equal(corpus_count(index, "SELECT id FROM images WHERE path LIKE '%sub/z.png'"), a);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM embeddings"), 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 1);
    /* deleted: marked; back again: as if nothing had happened */
    move_file(&c, "p/sub/z.png", "away.png");
    r = corpus_import(&c, index, "p", (vlp_import_options){0});
    assert_int_equal(r.gone, 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE state=2"), 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM embeddings"), 1);
    vlp_json *stats;
    assert_int_equal(vlp_index_stats(index, &stats), VLP_OK);
    assert_int_equal(vlp_json_int(stats, "gone", 0), 1);
    vlp_json_free(stats);
    move_file(&c, "away.png", "p/sub/z.png");
    r = corpus_import(&c, index, "p", (vlp_import_options){0});
    assert_int_equal(r.images, 2);
    assert_int_equal(corpus_count(index, "SELECT id FROM images WHERE path LIKE '%sub/z.png'"), a);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE state=2"), 0);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_integrity__dedupe_joins_captions_and_test_wins(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "a.png", 8, 8, 1);
    corpus_png(&c, "b.png", 8, 8, 1);
    corpus_png(&c, "c.png", 8, 8, 2);
    corpus_text(&c, "rows.csv",
                "image,caption,split\na.png,first,train\nb.png,second,test\n"
                "c.png,third,train\n");
    vlp_index *index = corpus_index(&c, "i.db");
    for (int run = 0; run < 2; run++) {
        vlp_import_report r =
            corpus_import(&c, index, "rows.csv", (vlp_import_options){.dedupe = true});
        assert_int_equal(r.duplicates, 1);
        assert_int_equal(r.crossed, 1);
        assert_int_equal(corpus_count(index, "SELECT count(*) FROM images"), 2);
        assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions c JOIN images i ON"
                                             " i.id=c.image_id WHERE path LIKE '%a.png'"),
                         2);
    }
    assert_int_equal(
        corpus_count(index,
                     "SELECT count(*) FROM images WHERE split='test' AND path LIKE '%a.png'"),
        1);
    vlp_index_free(index);
    corpus_close(&c);
}

/* A smooth picture, so that scaling keeps its look. */
static void draw(corpus *c, const char *name, int width, int height, int tilt) {
    vlp_image image = {0};
    vlp_buf png = {0};
    assert_int_equal(vlp_image_resize_memory(&image, width, height), VLP_OK);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            int u = x * 256 / width, v = y * 256 / height;
            int grey = tilt ? (u / 64 + v / 64) % 2 * 200 + u / 8
                            : (u - 128) * (u - 128) / 64 + (v / 32 % 2) * 40;
            memset(image.pixels + 3 * (y * width + x), grey > 255 ? 255 : grey, 3);
        }
    assert_int_equal(vlp_image_encode_png(&image, &png), VLP_OK);
    corpus_bytes(c, name, png.data, png.len);
    vlp_buf_free(&png);
    vlp_image_free(&image);
}

static void test_datasets_integrity__stats_find_look_alikes_and_repeated_captions(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    draw(&c, "large.png", 200, 160, 0);
    draw(&c, "small.png", 100, 80, 0);
    draw(&c, "other.png", 200, 160, 1);
    corpus_text(&c, "rows.csv",
                "image,caption,split\nlarge.png,stock photo,train\n"
                "small.png,Stock photo.,test\nother.png,stock photo,train\n");
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "rows.csv", (vlp_import_options){.check = true});
    vlp_json *stats;
    assert_int_equal(vlp_index_stats(index, &stats), VLP_OK);
    assert_int_equal(vlp_json_int(stats, "near_duplicates.images", 0), 3);
    assert_int_equal(vlp_json_int(stats, "near_duplicates.pairs", 0), 1);
    assert_int_equal(vlp_json_int(stats, "near_duplicates.across_splits", 0), 1);
    const vlp_json *repeated = vlp_json_at(vlp_json_key(stats, "repeated_captions"), 0);
    assert_int_equal(vlp_json_int(repeated, "images", 0), 3);
    const vlp_json *sizes = vlp_json_get(stats, "image_size.histogram");
    assert_int_equal(vlp_json_as_int(vlp_json_key(sizes, "64-127")), 1);
    assert_int_equal(vlp_json_as_int(vlp_json_key(sizes, "128-255")), 2);
    vlp_json_free(stats);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_integrity__captions_are_cleaned_as_albef_does(void **state) {
    (void)state;
    static const struct {
        const char *text, *clean;
    } cases[] = {
        {"A man's Hat, on-top/of <person>!", "a mans hat on top of person"},
        {"  (Quoted) \"words\" ; ~ #1: *", "quoted words 1"},
        {"ÉTÉ in Paris?", "été in paris"},
    };
    vlp_buf text = {0};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        bool repaired;
        assert_int_equal(vlp_caption_clean(&text, cases[i].text, strlen(cases[i].text), &repaired),
                         VLP_OK);
        assert_int_equal(vlp_caption_albef(&text, VLP_CAPTION_ALBEF_WORDS), VLP_OK);
        assert_string_equal(text.data, cases[i].clean);
    }
    vlp_buf_clear(&text);
    for (int i = 0; i < 40; i++) assert_int_equal(vlp_buf_puts(&text, "Word "), VLP_OK);
    assert_int_equal(vlp_caption_albef(&text, 30), VLP_OK);
    assert_int_equal(text.len, 30 * 5 - 1);
    vlp_buf_free(&text);
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "a.png", 8, 8, 1);
    corpus_text(&c, "rows.csv", "image,caption\na.png,\"A Dog, here!\"\na.png,plain\n");
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "rows.csv", (vlp_import_options){.clean = "albef"});
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='a dog here'"
                                         " AND CAST(original AS TEXT)='A Dog, here!'"),
                     1);
    assert_int_equal(
        corpus_count(index,
                     "SELECT count(*) FROM captions WHERE text='plain' AND original IS NULL"),
        1);
    vlp_import_report r = {0};
    vlp_import_options wrong = {.clean = "blip"};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "rows.csv"), &wrong, &r),
                     VLP_ERR_USAGE);
    vlp_index_free(index);
    corpus_close(&c);
}

/* The first import of an index takes another way than later ones; the rows must be the same. */
static void test_datasets_integrity__bulk_and_later_imports_agree(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_buf rows = {0};
    assert_int_equal(vlp_buf_puts(&rows, "image,caption,split\n"), VLP_OK);
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "i/%02d.png", i);
        corpus_png(&c, name, 3, 3, (uint64_t)(i % 40));
        assert_int_equal(
            vlp_buf_printf(&rows, "%s,words %d,%s\n", name, i, i >= 50 ? "test" : "train"), VLP_OK);
    }
    for (int i = 0; i < 60; i += 7)
        assert_int_equal(vlp_buf_printf(&rows, "i/%02d.png,again %d,train\n", i, i), VLP_OK);
    corpus_bytes(&c, "rows.csv", rows.data, rows.len);
    vlp_buf_free(&rows);
    corpus_text(&c, "line.txt", "a text before\n");
    vlp_index *bulk = corpus_index(&c, "bulk.db"), *later = corpus_index(&c, "later.db");
    corpus_import(&c, later, "line.txt", (vlp_import_options){0});
    vlp_import_report a = corpus_import(&c, bulk, "rows.csv", (vlp_import_options){0});
    vlp_import_report b = corpus_import(&c, later, "rows.csv", (vlp_import_options){0});
    assert_int_equal(a.images, b.images);
    assert_int_equal(a.captions, b.captions);
    assert_int_equal(a.duplicates, b.duplicates);
    vlp_index *both[] = {bulk, later};
    static const char *const sums[] = {
        "SELECT count(*) FROM images WHERE split='test'",
        "SELECT sum(group_id - (SELECT min(id) FROM images)) FROM images",
        "SELECT count(*) FROM captions WHERE image_id IS NOT NULL",
        "SELECT count(*) FROM sqlite_master WHERE type='index' AND sql IS NOT NULL",
        "SELECT count(*) FROM captions_fts WHERE captions_fts MATCH 'again'",
    };
    for (size_t i = 0; i < VLP_COUNT(sums); i++)
        assert_int_equal(corpus_count(both[0], sums[i]), corpus_count(both[1], sums[i]));
    assert_int_equal(corpus_count(bulk, sums[0]), 20);
    vlp_index_free(bulk);
    vlp_index_free(later);
    corpus_close(&c);
}

static void test_datasets_integrity__full_text_lags_and_catches_up(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_text(&c, "line.txt", "one zebra\n");
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "line.txt", (vlp_import_options){0});
    vlp_db *db = vlp_index_db(index);
    assert_int_equal(vlp_db_exec(db, "INSERT INTO captions(source_id, text, kind, hash, split)"
                                     " VALUES(1, 'late giraffe', 'text', 5, 'train')"),
                     VLP_OK);
    int64_t behind, n;
    vlp_hit hits[4];
    assert_int_equal(vlp_fulltext_behind(index, &behind), VLP_OK);
    assert_int_equal(behind, 1);
    assert_int_equal(vlp_catalogue_words(index, "giraffe", NULL, 4, hits, &n), VLP_ERR_USAGE);
    /* deleting what the full text has never seen must not harm it */
    assert_int_equal(vlp_db_exec(db, "DELETE FROM captions WHERE text='late giraffe';"
                                     "INSERT INTO captions(source_id, text, kind, hash, split)"
                                     " VALUES(1, 'later giraffe', 'text', 6, 'train')"),
                     VLP_OK);
    assert_int_equal(vlp_fulltext_update(index), VLP_OK);
    assert_int_equal(
        corpus_count(index, "SELECT count(*) FROM captions_fts WHERE captions_fts MATCH 'giraffe'"),
        1);
    assert_int_equal(
        vlp_db_exec(db,
                    "INSERT INTO captions_fts(captions_fts, rank) VALUES('integrity-check', 1)"),
        VLP_OK);
    vlp_index_free(index);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_integrity__moved_files_keep_rows_and_embeddings),
        cmocka_unit_test(test_datasets_integrity__dedupe_joins_captions_and_test_wins),
        cmocka_unit_test(test_datasets_integrity__stats_find_look_alikes_and_repeated_captions),
        cmocka_unit_test(test_datasets_integrity__captions_are_cleaned_as_albef_does),
        cmocka_unit_test(test_datasets_integrity__bulk_and_later_imports_agree),
        cmocka_unit_test(test_datasets_integrity__full_text_lags_and_catches_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
