/* Rows that a thread writes many at a statement, and the filter that says which places are new. */
#include "core/rng.h"
#include "datasets/seen.h"
#include "datasets/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

static const vlp_stream_table tables[] = {
    {"INSERT INTO a(id, text, bytes, more) VALUES", 4},
    {"INSERT INTO b(id) VALUES", 1},
};

static vlp_db *open_tables(void) {
    vlp_db *db;
    assert_int_equal(vlp_db_open_scratch(&db), VLP_OK);
    assert_int_equal(vlp_db_exec(db, "CREATE TABLE a(id INTEGER PRIMARY KEY, text TEXT NOT NULL,"
                                     " bytes BLOB, more INTEGER); CREATE TABLE b(id INTEGER)"),
                     VLP_OK);
    return db;
}

static vlp_status add_a(vlp_stream *stream, int i) {
    char text[32];
    snprintf(text, sizeof text, "%.*d", i % 7, i);
    const vlp_value values[] = {vlp_value_int(i), vlp_value_text(i % 5 ? text : ""),
                                vlp_value_bytes(VLP_VALUE_BLOB, &i, sizeof i),
                                vlp_value_text(NULL)};
    return vlp_stream_row(stream, 0, values);
}

static int64_t count(vlp_db *db, const char *sql) {
    int64_t n;
    if (vlp_db_int(db, sql, &n) != VLP_OK) fail_msg("%s", vlp_error());
    return n;
}

static void assert_row(vlp_db *db, int i) {
    char sql[96], text[32];
    snprintf(sql, sizeof sql, "SELECT text, bytes, more FROM a WHERE id=%d", i);
    snprintf(text, sizeof text, "%.*d", i % 7, i);
    vlp_stmt *stmt;
    bool row;
    int64_t len;
    assert_int_equal(vlp_stmt_new(&stmt, db, sql), VLP_OK);
    assert_int_equal(vlp_stmt_step(stmt, &row), VLP_OK);
    assert_true(row);
    assert_false(vlp_column_is_null(stmt, 0));
    assert_string_equal(vlp_column_text(stmt, 0, NULL), i % 5 ? text : "");
    const void *bytes = vlp_column_blob(stmt, 1, &len);
    assert_int_equal(len, sizeof i);
    assert_memory_equal(bytes, &i, sizeof i);
    assert_int_equal(vlp_column_is_null(stmt, 2), i != 77);
    vlp_stmt_free(stmt);
}

static void test_datasets_stream__rows_arrive_whole_and_in_order(void **state) {
    (void)state;
    vlp_db *db = open_tables();
    vlp_stream *stream;
    assert_int_equal(vlp_stream_new(&stream, db, tables, 2), VLP_OK);
    assert_false(vlp_stream_amend(stream, 0, 3, 1));
    int64_t sizes[] = {1, 31, 32, 33, 511, 512, 513, 3000};
    int rows = 0;
    for (size_t k = 0; k < VLP_COUNT(sizes); k++) {
        for (int64_t i = 0; i < sizes[k]; i++) {
            int id = ++rows;
            assert_int_equal(add_a(stream, id), VLP_OK);
            if (id == 77) assert_true(vlp_stream_amend(stream, 0, 3, 5));
            const vlp_value value = vlp_value_int(-id);
            if (id % 3 == 0) assert_int_equal(vlp_stream_row(stream, 1, &value), VLP_OK);
        }
        assert_int_equal(vlp_stream_wait(stream), VLP_OK);
        assert_int_equal(count(db, "SELECT count(*) FROM a"), rows);
        assert_int_equal(count(db, "SELECT count(*) FROM b"), rows / 3);
    }
    for (int i = 1; i <= rows; i++) assert_row(db, i);
    assert_int_equal(count(db, "SELECT count(*) FROM b WHERE id<>-3*rowid"), 0);
    vlp_stream_free(stream);
    vlp_db_free(db);
}

static void test_datasets_stream__a_failed_write_is_told(void **state) {
    (void)state;
    for (int at = 1; at < 2000; at += 333) {
        vlp_db *db = open_tables();
        vlp_stream *stream;
        assert_int_equal(vlp_stream_new(&stream, db, tables, 2), VLP_OK);
        vlp_status status = VLP_OK;
        for (int i = 0; i < 2000 && status == VLP_OK; i++)
            status = add_a(stream, i == at ? 0 : i); /* 0 is there already */
        if (status == VLP_OK) status = vlp_stream_wait(stream);
        assert_int_equal(status, VLP_ERR_IO);
        assert_non_null(strstr(vlp_error(), "UNIQUE"));
        assert_int_not_equal(vlp_stream_wait(stream), VLP_OK);
        vlp_stream_free(stream);
        vlp_db_free(db);
    }
}

static void test_datasets_stream__a_known_place_is_never_called_new(void **state) {
    (void)state;
    enum { N = 50000 };
    vlp_seen seen = {0};
    assert_int_equal(vlp_seen_open(&seen), VLP_OK);
    char path[64];
    int wrong = 0;
    for (int i = 1; i <= N; i++) {
        snprintf(path, sizeof path, "/data/%d.png", i / 2);
        vlp_hash key = vlp_seen_key(path, i % 2);
        wrong += vlp_seen_maybe(&seen, key);
        assert_int_equal(vlp_seen_id(&seen, key), 0);
        vlp_seen_add(&seen, key, i);
        assert_int_equal(vlp_seen_id(&seen, key), i);
    }
    assert_in_range(wrong, 0, N / 1000);
    int remembered = 0;
    for (int i = 1; i <= N; i++) {
        snprintf(path, sizeof path, "/data/%d.png", i / 2);
        vlp_hash key = vlp_seen_key(path, i % 2);
        assert_true(vlp_seen_maybe(&seen, key));
        int64_t id = vlp_seen_id(&seen, key);
        assert_true(id == 0 || id == i);
        remembered += id == i;
    }
    assert_true(remembered > N / 2);
    vlp_seen_close(&seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_stream__rows_arrive_whole_and_in_order),
        cmocka_unit_test(test_datasets_stream__a_failed_write_is_told),
        cmocka_unit_test(test_datasets_stream__a_known_place_is_never_called_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
