/* The n-th write, sync or allocation of an import fails, for every n until none does: the error is
 * one line, the index stays whole, and the next run completes it. */
#include "datasets_corpus.h"

#include <sqlite3.h>
#include <sys/wait.h>

/* A file system in front of SQLite's own whose n-th operation of a kind fails. */
static struct {
    sqlite3_vfs vfs, *real;
    sqlite3_io_methods methods;
    int64_t left; /* operations until one fails; 0 = none does */
    bool failed;
    int code;
    bool syncs; /* what counts: syncs, or writes */
} faulty;

typedef struct {
    sqlite3_file base;
    sqlite3_file *real;
} faulty_file;

static sqlite3_file *real_of(sqlite3_file *file) {
    return ((faulty_file *)file)->real;
}

static bool fails(bool sync) {
    if (sync != faulty.syncs || faulty.left == 0) return false;
    if (faulty.failed) return true; /* a full disk stays full */
    faulty.failed = --faulty.left == 0;
    if (faulty.failed) faulty.left = 1;
    return faulty.failed;
}

static int f_close(sqlite3_file *f) {
    int code = real_of(f)->pMethods ? real_of(f)->pMethods->xClose(real_of(f)) : SQLITE_OK;
    sqlite3_free(real_of(f));
    return code;
}
static int f_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) {
    return real_of(f)->pMethods->xRead(real_of(f), to, n, at);
}
static int f_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
    return fails(false) ? faulty.code : real_of(f)->pMethods->xWrite(real_of(f), from, n, at);
}
static int f_truncate(sqlite3_file *f, sqlite3_int64 n) {
    return real_of(f)->pMethods->xTruncate(real_of(f), n);
}
static int f_sync(sqlite3_file *f, int flags) {
    return fails(true) ? faulty.code : real_of(f)->pMethods->xSync(real_of(f), flags);
}
static int f_size(sqlite3_file *f, sqlite3_int64 *n) {
    return real_of(f)->pMethods->xFileSize(real_of(f), n);
}
static int f_lock(sqlite3_file *f, int lock) {
    return real_of(f)->pMethods->xLock(real_of(f), lock);
}
static int f_unlock(sqlite3_file *f, int lock) {
    return real_of(f)->pMethods->xUnlock(real_of(f), lock);
}
static int f_reserved(sqlite3_file *f, int *out) {
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}
static int f_control(sqlite3_file *f, int op, void *arg) {
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static int f_sector(sqlite3_file *f) {
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}
static int f_device(sqlite3_file *f) {
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}
static int f_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, out);
}
static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
static void f_barrier(sqlite3_file *f) {
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}
static int f_unmap(sqlite3_file *f, int remove) {
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static int f_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    (void)vfs;
    faulty_file *f = (faulty_file *)file;
    f->real = sqlite3_malloc(faulty.real->szOsFile);
    if (!f->real) return SQLITE_NOMEM;
    memset(f->real, 0, (size_t)faulty.real->szOsFile);
    int code = faulty.real->xOpen(faulty.real, name, f->real, flags, out);
    if (code != SQLITE_OK) {
        sqlite3_free(f->real);
        f->base.pMethods = NULL;
        return code;
    }
    f->base.pMethods = &faulty.methods;
    return SQLITE_OK;
}

static void install(void) {
    faulty.real = sqlite3_vfs_find(NULL);
    faulty.vfs = *faulty.real;
    faulty.vfs.pNext = NULL;
    faulty.vfs.zName = "faulty";
    faulty.vfs.szOsFile = sizeof(faulty_file);
    faulty.vfs.xOpen = f_open;
    faulty.methods = (sqlite3_io_methods){.iVersion = 2,
                                          .xClose = f_close,
                                          .xRead = f_read,
                                          .xWrite = f_write,
                                          .xTruncate = f_truncate,
                                          .xSync = f_sync,
                                          .xFileSize = f_size,
                                          .xLock = f_lock,
                                          .xUnlock = f_unlock,
                                          .xCheckReservedLock = f_reserved,
                                          .xFileControl = f_control,
                                          .xSectorSize = f_sector,
                                          .xDeviceCharacteristics = f_device,
                                          .xShmMap = f_map,
                                          .xShmLock = f_shm_lock,
                                          .xShmBarrier = f_barrier,
                                          .xShmUnmap = f_unmap};
    assert_int_equal(sqlite3_vfs_register(&faulty.vfs, 1), SQLITE_OK);
}

enum { N = 6 };

static void make_source(corpus *c) {
    for (int i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "p/%02d.png", i);
        corpus_png(c, name, 3, 3, (uint64_t)(i % 4));
        snprintf(name, sizeof name, "p/%02d.txt", i);
        corpus_text(c, name, "one caption\nand another\n");
    }
}

static vlp_status import(corpus *c, const char *db) {
    vlp_index *index;
    VLP_TRY(vlp_index_open(&index, corpus_path(c, db), VLP_DB_WRITE));
    vlp_import_options options = {.split_hash = "80,10,10", .commit_seconds = 1e-9};
    vlp_import_report report = {0};
    vlp_status status = vlp_index_import(index, corpus_path(c, "p"), &options, &report);
    vlp_index_free(index);
    return status;
}

static void assert_whole_and_complete(corpus *c, const char *db) {
    if (import(c, db) != VLP_OK) fail_msg("%s", vlp_error());
    vlp_index *index = corpus_index(c, db);
    vlp_stmt *stmt;
    bool row;
    assert_int_equal(vlp_stmt_new(&stmt, vlp_index_db(index), "PRAGMA integrity_check"), VLP_OK);
    assert_int_equal(vlp_stmt_step(stmt, &row), VLP_OK);
    assert_string_equal(vlp_column_text(stmt, 0, NULL), "ok");
    vlp_stmt_free(stmt);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images"), N);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE group_id<>id"), 2);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 2 * N);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM sources WHERE complete"), 1);
    vlp_index_free(index);
}

/* Steps grow, so that early failures are met one by one and late ones are met too. */
static int64_t next(int64_t n) {
    return n < 12 ? n + 1 : n + n / 3;
}

static int fail_each(corpus *c, bool syncs, int code) {
    int failures = 0;
    for (int64_t n = 1; n < 100000; n = next(n)) {
        char db[32];
        snprintf(db, sizeof db, "f%d-%lld.db", code, (long long)n);
        faulty.syncs = syncs;
        faulty.code = code;
        faulty.failed = false;
        faulty.left = n;
        vlp_status status = import(c, db);
        bool struck = faulty.failed;
        faulty.left = 0;
        if (struck && status != VLP_OK) {
            failures++;
            assert_non_null(strstr(vlp_error(), ".db"));
            assert_null(strchr(vlp_error(), '\n'));
        }
        assert_whole_and_complete(c, db);
        if (!struck) return failures;
    }
    fail_msg("an operation always fails");
    return 0;
}

static void test_datasets_faults__every_write_and_sync_may_fail(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    make_source(&c);
    install();
    assert_true(fail_each(&c, false, SQLITE_FULL) > 8);
    assert_true(fail_each(&c, false, SQLITE_IOERR_WRITE) > 8);
    assert_true(fail_each(&c, true, SQLITE_IOERR_FSYNC) > 2);
    faulty.left = 1;
    faulty.syncs = faulty.failed = false;
    faulty.code = SQLITE_FULL;
    assert_int_not_equal(import(&c, "full.db"), VLP_OK);
    assert_non_null(strstr(vlp_error(), "the disk is full; make room and run again"));
    faulty.left = 0;
    assert_int_equal(sqlite3_vfs_unregister(&faulty.vfs), SQLITE_OK);
    corpus_close(&c);
}

static void test_datasets_faults__every_allocation_may_fail(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    make_source(&c);
    bool struck = true;
    int failures = 0;
    for (int64_t n = 1; struck; n = next(n)) {
        char db[32];
        snprintf(db, sizeof db, "m%lld.db", (long long)n);
        int64_t before = vlp_alloc_count();
        vlp_alloc_fail_at(n);
        vlp_status status = import(&c, db);
        vlp_alloc_fail_at(0);
        struck = vlp_alloc_count() - before >= n;
        bool failed = status != VLP_OK;
        if (failed && status != VLP_ERR_MEMORY) fail_msg("%lld: %s", (long long)n, vlp_error());
        failures += failed;
        assert_whole_and_complete(&c, db);
    }
    assert_true(failures > 15);
    corpus_close(&c);
}

static void test_datasets_faults__a_locked_index_is_waited_for_and_told(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    make_source(&c);
    assert_whole_and_complete(&c, "l.db");
    vlp_db *other;
    assert_int_equal(vlp_db_open(&other, corpus_path(&c, "l.db"), VLP_DB_WRITE), VLP_OK);
    assert_int_equal(vlp_db_begin(other), VLP_OK);
    vlp_db_patience(50);
    assert_int_equal(import(&c, "l.db"), VLP_ERR_IO);
    assert_non_null(strstr(vlp_error(), "another program is writing it"));
    vlp_db_patience(0);
    vlp_db_rollback(other);
    vlp_db_free(other);
    assert_whole_and_complete(&c, "l.db");
    corpus_close(&c);
}

static void test_datasets_faults__a_damaged_index_is_told(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    make_source(&c);
    assert_whole_and_complete(&c, "d.db");
    vlp_buf bytes = {0};
    assert_int_equal(vlp_file_read(corpus_path(&c, "d.db"), 0, &bytes), VLP_OK);
    memset(bytes.data + 4096, 0x5A, bytes.len - 4096);
    corpus_bytes(&c, "d.db", bytes.data, bytes.len);
    vlp_buf_free(&bytes);
    assert_int_equal(import(&c, "d.db"), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "the file is damaged; delete it and index again"));
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_faults__every_write_and_sync_may_fail),
        cmocka_unit_test(test_datasets_faults__every_allocation_may_fail),
        cmocka_unit_test(test_datasets_faults__a_locked_index_is_waited_for_and_told),
        cmocka_unit_test(test_datasets_faults__a_damaged_index_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
