#include "datasets/bulk.h"
#include "datasets_corpus.h"
#include "tests/valgrind.h"

#include <signal.h>
#include <sys/wait.h>

enum { N = 800, ROWS = 3 * N, CHAINS = 4, CHAIN = 5, SLACK = 200 };

/* Three rows an image: two captions, and an empty one that is skipped, which the importer reports
 * at once: so a child knows which row it has come to. */
static void make_source(corpus *c) {
    vlp_buf lines = {0};
    for (int i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "i/%04d.png", i);
        corpus_png(c, name, 3, 3, (uint64_t)(i % (N - 50)));
        assert_int_equal(vlp_buf_printf(&lines,
                                        "{\"image\":\"%s\",\"caption\":\"word%d\"}\n"
                                        "{\"image\":\"%s\",\"caption\":\"more %d\"}\n"
                                        "{\"image\":\"%s\",\"caption\":\" \"}\n",
                                        name, i, name, i, name),
                         VLP_OK);
    }
    corpus_bytes(c, "pairs.jsonl", lines.data, lines.len);
    vlp_buf_free(&lines);
}

/* Where a child tells that it may be killed, and where it waits if it has not been. */
typedef struct {
    int64_t ready, last;
    int pipe;
} kill_window;

static void at_row(const char *path, int64_t row, vlp_skip_reason reason, const char *detail,
                   void *user) {
    (void)path, (void)reason, (void)detail;
    kill_window *window = user;
    if (row >= window->ready) {
        if (write(window->pipe, "r", 1) != 1) _exit(4);
        window->ready = INT64_MAX;
    }
    while (row >= window->last) pause();
}

static void import_until(corpus *c, const char *db, kill_window *window) {
    vlp_index *index;
    if (vlp_index_open(&index, corpus_path(c, db), VLP_DB_WRITE) != VLP_OK) _exit(3);
    vlp_import_options options = {
        .split_hash = "80,10,10", .commit_seconds = 1e-9, .skipped = at_row, .user = window};
    vlp_import_report report = {0};
    if (vlp_index_import(index, corpus_path(c, "pairs.jsonl"), &options, &report) != VLP_OK)
        _exit(5);
    while (true) pause();
}

/* Kills an import at a moment after row `ready` and before row `last`; INT64_MAX = at all. */
static void kill_between(corpus *c, const char *db, int64_t ready, int64_t last, vlp_rng *rng) {
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        import_until(c, db, &(kill_window){ready, last, ends[1]});
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    useconds_t longest = under_valgrind() ? 300000 : last == INT64_MAX ? 30000 : 5000;
    usleep((useconds_t)vlp_rng_below(rng, longest));
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    close(ends[0]);
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
    int64_t missing; /* of the indexes that a first import makes at its end */
    assert_int_equal(vlp_bulk_missing(vlp_index_db(index), &missing), VLP_OK);
    assert_int_equal(missing, 0);
    assert_int_equal(vlp_stmt_new(&stmt, vlp_index_db(index), "PRAGMA integrity_check"), VLP_OK);
    assert_int_equal(vlp_stmt_step(stmt, &row), VLP_OK);
    assert_string_equal(vlp_column_text(stmt, 0, NULL), "ok");
    vlp_stmt_free(stmt);
    assert_int_equal(
        vlp_db_exec(vlp_index_db(index),
                    "INSERT INTO captions_fts(captions_fts) VALUES('integrity-check')"),
        VLP_OK);
}

static void import_the_rest(corpus *c, const char *db, vlp_hash whole) {
    vlp_index *index = corpus_index(c, db);
    vlp_import_report report =
        corpus_import(c, index, "pairs.jsonl", (vlp_import_options){.split_hash = "80,10,10"});
    assert_int_equal(report.images, N);
    assert_whole(index);
    vlp_hash after = contents(index);
    assert_true(whole.high == after.high && whole.low == after.low);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 2 * N);
    vlp_index_free(index);
}

/* Four times: a new index, killed at four random rows and once after the last, then completed. */
static void test_datasets_kill__a_killed_import_is_whole_and_completes(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    make_source(&c);
    vlp_index *index = corpus_index(&c, "whole.db");
    corpus_import(&c, index, "pairs.jsonl", (vlp_import_options){.split_hash = "80,10,10"});
    vlp_hash whole = contents(index);
    vlp_index_free(index);
    vlp_rng rng = vlp_rng_at((uint64_t)getpid(), VLP_RNG_TEST, 0, 0);
    for (int round = 0; round < CHAINS * CHAIN; round++) {
        char db[32];
        snprintf(db, sizeof db, "killed%d.db", round / CHAIN);
        bool at_end = round % CHAIN == CHAIN - 1;
        int64_t row =
            at_end ? ROWS : SLACK + (int64_t)vlp_rng_below(&rng, ROWS - 3 * (uint64_t)SLACK);
        kill_between(&c, db, row, at_end ? INT64_MAX : row + SLACK, &rng);
        index = corpus_index(&c, db);
        assert_whole(index);
        int64_t images = corpus_count(index, "SELECT count(*) FROM images");
        assert_in_range(images, 1, at_end ? N : N - 1);
        vlp_index_free(index);
        if (at_end) import_the_rest(&c, db, whole);
    }
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
