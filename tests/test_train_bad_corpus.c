/* Thirty kinds of unusable rows and files among good ones: each is named once with its reason, and
 * training goes on as if they were not there, bit for bit. */
#include "tests/fixture_corpus.h"

#include <sys/stat.h>

enum { PICTURES = 20 };

typedef struct {
    const char *name;    /* of the file, or NULL: the row itself is bad */
    const char *caption; /* as JSON */
    const char *row;     /* the whole line, instead of name and caption */
    const char *reason;
    void (*make)(corpus *c, const char *name);
    const char *text; /* the file's bytes, without make */
} bad_row;

static void encoded(vlp_buf *out, bool jpeg) {
    vlp_image image = {0};
    assert_int_equal(vlp_image_resize_memory(&image, FIXTURE_SIDE, FIXTURE_SIDE), VLP_OK);
    vlp_rng rng = vlp_rng_at(2, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < FIXTURE_SIDE * FIXTURE_SIDE * 3; i++)
        image.pixels[i] = (uint8_t)vlp_rng_u32(&rng);
    vlp_status status =
        jpeg ? vlp_image_encode_jpeg(&image, 90, out) : vlp_image_encode_png(&image, out);
    assert_int_equal(status, VLP_OK);
    vlp_image_free(&image);
}

static void make_png_half(corpus *c, const char *name) {
    vlp_buf bytes = {0};
    encoded(&bytes, false);
    corpus_bytes(c, name, bytes.data, bytes.len / 2);
    vlp_buf_free(&bytes);
}

static void make_png_header_only(corpus *c, const char *name) {
    vlp_buf bytes = {0};
    encoded(&bytes, false);
    corpus_bytes(c, name, bytes.data, 33);
    vlp_buf_free(&bytes);
}

static void make_png_signature(corpus *c, const char *name) {
    corpus_bytes(c, name, "\x89PNG\r\n\x1a\n", 8);
}

static void make_png_garbage(corpus *c, const char *name) {
    vlp_buf bytes = {0};
    encoded(&bytes, false);
    for (size_t i = bytes.len / 2; i < bytes.len - 20; i++) bytes.data[i] ^= 0x55;
    corpus_bytes(c, name, bytes.data, bytes.len);
    vlp_buf_free(&bytes);
}

static uint32_t crc_of(const uint8_t *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void make_png_of_size(corpus *c, const char *name, uint32_t width, uint32_t height) {
    vlp_buf bytes = {0};
    encoded(&bytes, false);
    uint8_t *header = (uint8_t *)bytes.data + 12; /* "IHDR", width, height, ..., check sum */
    put_32(header + 4, width);
    put_32(header + 8, height);
    put_32(header + 17, crc_of(header, 17));
    corpus_bytes(c, name, bytes.data, bytes.len);
    vlp_buf_free(&bytes);
}

static void make_png_huge(corpus *c, const char *name) {
    make_png_of_size(c, name, 60000, 60000);
}

static void make_png_flat(corpus *c, const char *name) {
    make_png_of_size(c, name, 0, 40);
}

static void make_png_longer(corpus *c, const char *name) {
    make_png_of_size(c, name, FIXTURE_SIDE, 4000); /* more lines than there are bytes for */
}

static void make_jpeg_half(corpus *c, const char *name) {
    vlp_buf bytes = {0};
    encoded(&bytes, true);
    corpus_bytes(c, name, bytes.data, bytes.len / 3);
    vlp_buf_free(&bytes);
}

static void make_jpeg_start(corpus *c, const char *name) {
    corpus_bytes(c, name, "\xff\xd8\xff\xe0", 4);
}

static void make_noise(corpus *c, const char *name) {
    uint8_t bytes[4096];
    vlp_rng rng = vlp_rng_at(5, VLP_RNG_TEST, 0, 0);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)vlp_rng_u32(&rng);
    corpus_bytes(c, name, bytes, sizeof bytes);
}

static void make_zeros(corpus *c, const char *name) {
    static const uint8_t bytes[4096];
    corpus_bytes(c, name, bytes, sizeof bytes);
}

static void make_folder(corpus *c, const char *name) {
    assert_int_equal(mkdir(corpus_path(c, name), 0777), 0);
}

static void make_fifo(corpus *c, const char *name) {
    assert_int_equal(mkfifo(corpus_path(c, name), 0666), 0);
}

static void make_dangling(corpus *c, const char *name) {
    assert_int_equal(symlink("nowhere.png", corpus_path(c, name)), 0);
}

static void make_loop(corpus *c, const char *name) {
    assert_int_equal(symlink(strrchr(name, '/') + 1, corpus_path(c, name)), 0);
}

static void make_good(corpus *c, const char *name) {
    fixture_picture(c, name, 500);
}

/* A caption of 10,000 characters, quotes included. */
static char endless[10003];

static const bad_row bad_rows[] = {
    {"b/zero.png", "\"x\"", NULL, "zero bytes", NULL, ""},
    {"b/half.png", "\"x\"", NULL, "", make_png_half, NULL},
    {"b/header.png", "\"x\"", NULL, "", make_png_header_only, NULL},
    {"b/signature.png", "\"x\"", NULL, "", make_png_signature, NULL},
    {"b/garbage.png", "\"x\"", NULL, "", make_png_garbage, NULL},
    {"b/huge.png", "\"x\"", NULL, "too large", make_png_huge, NULL},
    {"b/flat.png", "\"x\"", NULL, "", make_png_flat, NULL},
    {"b/longer.png", "\"x\"", NULL, "", make_png_longer, NULL},
    {"b/half.jpg", "\"x\"", NULL, "", make_jpeg_half, NULL},
    {"b/start.jpg", "\"x\"", NULL, "", make_jpeg_start, NULL},
    {"b/page.jpg", "\"x\"", NULL, "not an image", NULL, "<!DOCTYPE html><html>404</html>"},
    {"b/words.png", "\"x\"", NULL, "not an image", NULL, "not a picture at all"},
    {"b/moving.png", "\"x\"", NULL, "", NULL, "GIF89a\x01\x01\x01\x01"},
    {"b/bitmap.jpg", "\"x\"", NULL, "", NULL, "BM6789\x01\x01\x01\x01"},
    {"b/noise.jpg", "\"x\"", NULL, "not an image", make_noise, NULL},
    {"b/zeros.png", "\"x\"", NULL, "not an image", make_zeros, NULL},
    {"b/missing.png", "\"x\"", NULL, "missing", NULL, NULL},
    {"b/folder.png", "\"x\"", NULL, "", make_folder, NULL},
    {"b/fifo.png", "\"x\"", NULL, "", make_fifo, NULL},
    {"b/dangling.png", "\"x\"", NULL, "missing", make_dangling, NULL},
    {"b/loop.png", "\"x\"", NULL, "", make_loop, NULL},
    {"b/empty-caption.png", "\"\"", NULL, "empty caption", make_good, NULL},
    {"b/blank-caption.png", "\" \\t \"", NULL, "empty caption", make_good, NULL},
    {"b/no-captions.png", "[]", NULL, "empty caption", make_good, NULL},
    {"b/true-caption.png", "true", NULL, "empty caption", make_good, NULL},
    {"b/nul-caption.jpg", "\"a\\u0000b\"", NULL, "zero bytes", NULL, ""},
    {"b/malformed-caption.png", "\"zebra \xff\xfe\"", NULL, "not an image", NULL, "words"},
    {"b/endless-caption.png", endless, NULL, "zero bytes", NULL, ""},
    {NULL, NULL, "{\"image\": \"pictures/000.png\", \"caption\": ", "bad row", NULL, NULL},
    {NULL, NULL, "not json", "bad row", NULL, NULL},
    {NULL, NULL, "[1, 2]", "bad row", NULL, NULL},
    {NULL, NULL, "{\"image\": 5, \"caption\": \"x\"}", "bad row", NULL, NULL},
    {NULL, NULL, "{\"image\": \"\", \"caption\": \"x\"}", "", NULL, NULL},
    {NULL, NULL, "{\"image\": \"b/\\u0000.png\", \"caption\": \"x\"}", "", NULL, NULL},
};

enum { BAD = VLP_COUNT(bad_rows) };

typedef struct {
    int64_t line[BAD];
    int named[BAD];
    char reason[BAD][64];
} report;

/* Which bad row a skipped entry speaks of: by the file's name or by the line. */
static bool take(const char *path, int64_t row, const char *reason, const char *detail,
                 void *user) {
    report *r = user;
    int found = -1;
    for (int i = 0; i < BAD; i++) {
        const char *name = bad_rows[i].name;
        size_t n = name ? strlen(name) : 0, len = strlen(path);
        bool same = name ? len >= n && strcmp(path + len - n, name) == 0 : false;
        if (same || (found < 0 && row == r->line[i])) found = i;
        if (same) break;
    }
    if (getenv("VLP_TEST_VERBOSE"))
        print_message("%d: %s:%lld %s, %s\n", found, path, (long long)row, reason, detail);
    if (found < 0) fail_msg("skipped without need: %s:%lld %s", path, (long long)row, reason);
    r->named[found]++;
    snprintf(r->reason[found], sizeof r->reason[found], "%s", reason);
    return true;
}

/* Good rows with a bad one before each; more bad ones at the end. */
static void mix(corpus *c, vlp_buf *rows, report *r) {
    vlp_buf good = {0};
    int64_t line = 0;
    int next = 0;
    fixture_pictures(c, PICTURES, NULL, &good);
    assert_int_equal(vlp_make_folder(corpus_path(c, "b")), VLP_OK);
    for (char *save, *text = strtok_r(good.data, "\n", &save); text || next < BAD;
         text = text ? strtok_r(NULL, "\n", &save) : NULL) {
        if (next < BAD) {
            const bad_row *b = &bad_rows[next];
            if (b->make) b->make(c, b->name);
            if (b->text) corpus_text(c, b->name, b->text);
            vlp_status status = b->row
                                    ? vlp_buf_printf(rows, "%s\n", b->row)
                                    : vlp_buf_printf(rows,
                                                     "{\"image\":\"%s\",\"caption\":%s,\"split\":"
                                                     "\"train\"}\n",
                                                     b->name, b->caption);
            assert_int_equal(status, VLP_OK);
            r->line[next++] = ++line;
        }
        if (!text) continue;
        assert_int_equal(vlp_buf_printf(rows, "%s\n", text), VLP_OK);
        line++;
    }
    vlp_buf_free(&good);
}

static void check_named(corpus *c, report *r) {
    vlp_index *index = corpus_index(c, "pairs.db");
    vlp_verify_report verified;
    vlp_verify_options options = {0};
    assert_int_equal(vlp_index_verify(index, &options, &verified), VLP_OK);
    assert_int_equal(vlp_index_skipped(index, take, r), VLP_OK);
    vlp_index_free(index);
    int wrong = 0;
    for (int i = 0; i < BAD; i++) {
        const char *what = bad_rows[i].name ? bad_rows[i].name : bad_rows[i].row;
        bool right = r->named[i] == 1 && strstr(r->reason[i], bad_rows[i].reason);
        if (!right)
            print_error("%s: named %d times, last as \"%s\", wanted \"%s\"\n", what, r->named[i],
                        r->reason[i], bad_rows[i].reason);
        wrong += !right;
    }
    assert_int_equal(wrong, 0);
}

static void same_training(const corpus *good, const corpus *bad, const char *file) {
    vlp_buf a = {0}, b = {0};
    fixture_read(good, file, &a);
    fixture_read(bad, file, &b);
    if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0) fail_msg("%s differs", file);
    vlp_buf_free(&a);
    vlp_buf_free(&b);
}

static void test_train_bad_corpus__bad_rows_are_named_once_and_change_nothing(void **state) {
    (void)state;
    static const char *const recipes[] = {"vlp", "clip"};
    corpus good, bad;
    vlp_buf rows = {0};
    static report r;
    endless[0] = endless[10001] = '"';
    memset(endless + 1, 'q', 10000);
    fixture_open(&good, PICTURES);
    corpus_open(&bad);
    mix(&bad, &rows, &r);
    fixture_index(&bad, &rows);
    check_named(&bad, &r);
    for (size_t i = 0; i < VLP_COUNT(recipes); i++) {
        char file[64];
        if (fixture_train(&good, recipes[i], recipes[i], "steps=12 augment.flip=0.5") != VLP_OK ||
            fixture_train(&bad, recipes[i], recipes[i], "steps=12 augment.flip=0.5") != VLP_OK)
            fail_msg("%s", vlp_error());
        snprintf(file, sizeof file, "%s/vocab.txt", recipes[i]);
        same_training(&good, &bad, file);
        snprintf(file, sizeof file, "%s/model.safetensors", recipes[i]);
        same_training(&good, &bad, file);
        char copy[2400];
        snprintf(copy, sizeof copy, "mkdir -p '%s/other' && cp '%s/%s/metrics.jsonl' '%s/other'",
                 good.folder, bad.folder, recipes[i], good.folder);
        assert_int_equal(system(copy), 0);
        fixture_same_metrics(&good, recipes[i], "other");
    }
    vlp_buf_free(&rows);
    corpus_close(&good);
    corpus_close(&bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_bad_corpus__bad_rows_are_named_once_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
