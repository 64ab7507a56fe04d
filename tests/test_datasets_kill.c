#include "datasets_corpus.h"
#include "tests/valgrind.h"

#include <signal.h>
#include <sys/wait.h>

enum { N = 1500 };

static void make_source(corpus *c) {
    vlp_buf lines = {0};
    for (int i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "i/%04d.png", i);
        corpus_png(c, name, 3, 3, (uint64_t)(i % (N - 100)));
        assert_int_equal(
            vlp_buf_printf(&lines, "{\"image\":\"%s\",\"caption\":\"word%d\"}\n", name, i), VLP_OK);
        assert_int_equal(
            vlp_buf_printf(&lines, "{\"image\":\"%s\",\"caption\":\"more %d\"}\n", name, i),
            VLP_OK);
    }
    corpus_bytes(c, "pairs.jsonl", lines.data, lines.len);
    vlp_buf_free(&lines);
}

static void import_slowly(corpus *c, const char *db) {
    vlp_index *index;
    if (vlp_index_open(&index, corpus_path(c, db), VLP_DB_WRITE) != VLP_OK) _exit(3);
    vlp_import_options options = {.split_hash = "80,10,10", .commit_seconds = 1e-4};
    vlp_import_report report = {0};
    vlp_index_import(index, corpus_path(c, "pairs.jsonl"), &options, &report);
    _exit(0);
}

/* Everything but row ids. */
static vlp_hash contents(const vlp_index *index) {
    vlp_stmt *stmt;
    assert_int_equal(vlp_stmt_new(&stmt, vlp_index_db(index),
                                  "SELECT i.path||'|'||i.split||'|'||hex(i.hash)||'|'||c.text||'|'"
                                  "||(SELECT min(path) FROM images g WHERE g.group_id=i.group_id)"
                                  " FROM images i JOIN captions c ON c.image_id=i.id"
                                  " ORDER BY i.path, c.text"),
                     VLP_OK);
    vlp_hash hash = {0, 0};
    bool row = true;
    int rows = 0;
    while (vlp_stmt_step(stmt, &row) == VLP_OK && row) {
        int64_t len;
        const char *text = vlp_column_text(stmt, 0, &len);
        hash = vlp_hash_more(hash, text, (size_t)len);
        rows++;
    }
    vlp_stmt_free(stmt);
    assert_int_equal(rows, 2 * N);
    return hash;
}

static void assert_whole(const vlp_index *index) {
    vlp_stmt *stmt;
    bool row;
    assert_int_equal(vlp_stmt_new(&stmt, vlp_index_db(index), "PRAGMA integrity_check"), VLP_OK);
    assert_int_equal(vlp_stmt_step(stmt, &row), VLP_OK);
    assert_string_equal(vlp_column_text(stmt, 0, NULL), "ok");
    vlp_stmt_free(stmt);
    assert_int_equal(
        vlp_db_exec(vlp_index_db(index),
                    "INSERT INTO captions_fts(captions_fts) VALUES('integrity-check')"),
        VLP_OK);
}

static void test_datasets_kill__a_killed_import_is_whole_and_completes(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    make_source(&c);
    vlp_index *index = corpus_index(&c, "whole.db");
    corpus_import(&c, index, "pairs.jsonl", (vlp_import_options){.split_hash = "80,10,10"});
    vlp_hash whole = contents(index);
    vlp_index_free(index);
    int killed = 0, partial = 0;
    vlp_rng rng = vlp_rng_at((uint64_t)getpid(), VLP_RNG_TEST, 0, 0);
    for (int round = 1; round <= 20; round++) {
        pid_t child = fork();
        if (child == 0) import_slowly(&c, "killed.db");
        useconds_t most = under_valgrind() ? 4000000 : 90000;
        usleep((useconds_t)(1000 + vlp_rng_below(&rng, most)));
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        killed += WIFSIGNALED(status);
        index = corpus_index(&c, "killed.db");
        assert_whole(index);
        int64_t images = corpus_count(index, "SELECT count(*) FROM images");
        partial += images > 0 && images < N;
        vlp_index_free(index);
    }
    assert_true(killed > 0);
    assert_true(partial > 0);
    index = corpus_index(&c, "killed.db");
    vlp_import_report report =
        corpus_import(&c, index, "pairs.jsonl", (vlp_import_options){.split_hash = "80,10,10"});
    assert_int_equal(report.images, N);
    assert_whole(index);
    vlp_hash after = contents(index);
    assert_true(whole.high == after.high && whole.low == after.low);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 2 * N);
    vlp_index_free(index);
    corpus_close(&c);
}

static bool stop_soon(int64_t rows, int64_t total, void *user) {
    (void)rows, (void)total;
    return --*(int *)user > 0;
}

static void test_datasets_kill__an_interrupt_saves_what_was_verified(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    for (int i = 0; i < 600; i++) {
        char name[32];
        snprintf(name, sizeof name, "i/%04d.png", i);
        corpus_png(&c, name, 3, 3, (uint64_t)i);
    }
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "i", (vlp_import_options){0});
    int left = 1;
    vlp_verify_options options = {.threads = 1, .progress = stop_soon, .user = &left};
    vlp_verify_report report = {0};
    assert_int_equal(vlp_index_verify(index, &options, &report), VLP_ERR_INTERRUPTED);
    int64_t good = corpus_count(index, "SELECT count(*) FROM images WHERE state=1");
    assert_in_range(good, 1, 599);
    left = 100;
    report = (vlp_verify_report){0};
    assert_int_equal(vlp_index_verify(index, &options, &report), VLP_OK);
    assert_int_equal(report.checked, 600 - good);
    vlp_index_free(index);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_kill__a_killed_import_is_whole_and_completes),
        cmocka_unit_test(test_datasets_kill__an_interrupt_saves_what_was_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
