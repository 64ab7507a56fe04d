#include "datasets_corpus.h"

#include <fcntl.h>
#include <sys/stat.h>

static void test_datasets_import__folder_with_captions_and_alone(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "photos/a.png", 8, 6, 1);
    corpus_text(&c, "photos/a.txt", "a red square\n\n  another   view \n");
    corpus_png(&c, "photos/sub/b.png", 5, 5, 2);
    corpus_text(&c, "photos/notes.md", "no image");
    corpus_text(&c, "photos/zero.jpg", "");
    corpus_text(&c, "photos/page.jpg", "<html>moved</html>");
    corpus_bytes(&c, "photos/cut.png", "\x89PNG\r\n\x1A\n\0\0", 10);
    corpus_bytes(&c, "photos/phone.heic",
                 "\0\0\0\x18"
                 "ftypheic........",
                 20);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "photos", (vlp_import_options){0});
    assert_int_equal(r.images, 2);
    assert_int_equal(r.captions, 2);
    assert_int_equal(r.added, 2);
    assert_int_equal(r.skipped, 4);
    assert_int_equal(r.by_reason[VLP_SKIP_ZERO_BYTES], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_NOT_AN_IMAGE], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_TRUNCATED], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_UNSUPPORTED], 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='another view'"),
                     1);
    assert_int_equal(corpus_count(index, "SELECT width*100+height FROM images LIMIT 1"), 806);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM skipped"), 4);
    r = corpus_import(&c, index, "photos", (vlp_import_options){0});
    assert_int_equal(r.unchanged, 2);
    assert_int_equal(r.added + r.changed + r.removed, 0);
    assert_int_equal(r.captions, 2);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 2);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM skipped"), 4);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_import__changes_and_removals_are_followed(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "p/a.png", 8, 8, 1);
    corpus_png(&c, "p/b.png", 8, 8, 2);
    corpus_text(&c, "p/b.txt", "old words");
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "p", (vlp_import_options){0});
    int64_t b = corpus_count(index, "SELECT id FROM images WHERE path LIKE '%b.png'");
    assert_int_equal(unlink(corpus_path(&c, "p/a.png")), 0);
    corpus_png(&c, "p/b.png", 9, 8, 3);
    corpus_text(&c, "p/b.txt", "new words");
    vlp_import_report r = corpus_import(&c, index, "p", (vlp_import_options){0});
    assert_int_equal(r.changed, 1);
    assert_int_equal(r.removed, 0);
    assert_int_equal(r.gone, 1); /* its row waits, marked */
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE state=2"), 1);
    assert_int_equal(corpus_count(index, "SELECT id FROM images WHERE state=0"), b);
    assert_int_equal(corpus_count(index, "SELECT width FROM images WHERE state=0"), 9);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='new words'"),
                     1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 1);
    assert_int_equal(
        corpus_count(index, "SELECT count(*) FROM captions_fts WHERE captions_fts MATCH 'old'"), 0);
    assert_int_equal(
        corpus_count(index, "SELECT count(*) FROM captions_fts WHERE captions_fts MATCH 'new'"), 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_import__jsonl_keys_lists_and_bad_rows(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "i/%d.png", i);
        corpus_png(&c, name, 4, 4, (uint64_t)i);
    }
    corpus_text(&c, "pairs.jsonl",
                "{\"file_name\":\"i/0.png\",\"text\":\"one &amp; two\",\"stars\":5}\n"
                "{\"file_name\":\"i/1.png\",\"text\":[\"x\",\"y\",\"\"],\"split\":\"test\"}\n"
                "\n"
                "{\"file_name\":\"i/2.png\",\"text\":\"  \"}\n"
                "{\"file_name\":\"i/none.png\",\"text\":\"gone\"}\n"
                "{broken\n"
                "{\"file_name\":\"i/3.png\",\"text\":\"nul \\u0000 bad \xff utf\"}\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "pairs.jsonl", (vlp_import_options){0});
    assert_int_equal(r.images, 3);
    assert_int_equal(r.captions, 4);
    assert_int_equal(r.by_reason[VLP_SKIP_EMPTY_CAPTION], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_MISSING], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
    assert_int_equal(corpus_count(index, "SELECT row FROM skipped WHERE reason='bad row'"), 6);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE split='test'"), 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='one & two'"),
                     1);
    assert_int_equal(
        corpus_count(index, "SELECT json_extract(fields,'$.stars') FROM images LIMIT 1"), 5);
    int64_t last = corpus_count(index, "SELECT max(id) FROM captions");
    r = corpus_import(&c, index, "pairs.jsonl", (vlp_import_options){0});
    assert_int_equal(r.captions, 4);
    assert_int_equal(corpus_count(index, "SELECT max(id) FROM captions"), last); /* found again */
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_import__manifest_in_a_folder_is_found_and_named_by_it(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    for (int k = 0; k < 2; k++) {
        char name[64];
        snprintf(name, sizeof name, "%d/art/i/a.png", k);
        corpus_png(&c, name, 4, 4, (uint64_t)k);
        snprintf(name, sizeof name, "%d/art/captions.jsonl", k);
        corpus_text(&c, name, "{\"image\":\"i/a.png\",\"caption\":\"x\"}\n");
    }
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "0/art/", (vlp_import_options){0});
    assert_int_equal(r.captions, 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM sources WHERE name='art'"), 1);
    corpus_import(&c, index, "1/art/i", (vlp_import_options){.name = "other"});
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM sources WHERE name='other'"), 1);
    vlp_json *json = vlp_import_report_json(&r);
    assert_int_equal(vlp_json_int(json, "new", -1), 1);
    assert_true(vlp_json_is_object(vlp_json_get(json, "skipped_by_reason")));
    vlp_json_free(json);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_import__foreign_and_missing_databases_are_refused(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_index *index;
    assert_int_equal(vlp_index_open(&index, corpus_path(&c, "no.db"), VLP_DB_READ),
                     VLP_ERR_NOT_FOUND);
    corpus_text(&c, "text.db", "this is no database, though it is long enough to look like one");
    assert_int_equal(vlp_index_open(&index, corpus_path(&c, "text.db"), VLP_DB_WRITE),
                     VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "text.db"));
    vlp_db *db;
    assert_int_equal(vlp_db_open(&db, corpus_path(&c, "other.db"), VLP_DB_WRITE), VLP_OK);
    assert_int_equal(vlp_db_exec(db, "CREATE TABLE t(x)"), VLP_OK);
    vlp_db_free(db);
    assert_int_equal(vlp_index_open(&index, corpus_path(&c, "other.db"), VLP_DB_WRITE),
                     VLP_ERR_FORMAT);
    index = corpus_index(&c, "new.db");
    assert_int_equal(vlp_db_exec(vlp_index_db(index), "PRAGMA user_version=99"), VLP_OK);
    vlp_index_free(index);
    assert_int_equal(vlp_index_open(&index, corpus_path(&c, "new.db"), VLP_DB_WRITE),
                     VLP_ERR_UNSUPPORTED);
    assert_int_equal(vlp_index_open(&index, c.folder, VLP_DB_WRITE), VLP_ERR_USAGE);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_import__folder_with_captions_and_alone),
        cmocka_unit_test(test_datasets_import__changes_and_removals_are_followed),
        cmocka_unit_test(test_datasets_import__jsonl_keys_lists_and_bad_rows),
        cmocka_unit_test(test_datasets_import__manifest_in_a_folder_is_found_and_named_by_it),
        cmocka_unit_test(test_datasets_import__foreign_and_missing_databases_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
