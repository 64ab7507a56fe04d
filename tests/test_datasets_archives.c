#include "datasets_corpus.h"

#include "datasets/archive.h"
#include "datasets/reader.h"

#include <sys/stat.h>

enum { BLOCK = 512 };

/* One member of a tar: header, content, padding. type '0' is a file, '2' a link. */
static void add_member(vlp_buf *tar, const char *name, const void *data, size_t len, char type) {
    char header[BLOCK] = {0};
    snprintf(header, 100, "%s", name);
    memcpy(header + 100, "0000644\0000000000\0000000000\0", 24);
    snprintf(header + 124, 12, "%011zo", len);
    snprintf(header + 136, 12, "%011o", 0);
    memset(header + 148, ' ', 8);
    header[156] = type;
    if (type == '2') snprintf(header + 157, 100, "elsewhere");
    memcpy(header + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (int i = 0; i < BLOCK; i++) sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    assert_int_equal(vlp_buf_append(tar, header, BLOCK), VLP_OK);
    assert_int_equal(vlp_buf_append(tar, data, len), VLP_OK);
    static const char zeros[BLOCK];
    assert_int_equal(vlp_buf_append(tar, zeros, (BLOCK - len % BLOCK) % BLOCK), VLP_OK);
}

static void add_text(vlp_buf *tar, const char *name, const char *text) {
    add_member(tar, name, text, strlen(text), '0');
}

/* A PNG of `width` x 5 as a member, so that the size tells which picture was read. */
static void add_picture(corpus *c, vlp_buf *tar, const char *name, int width) {
    vlp_buf png = {0};
    corpus_png(c, "scratch.png", width, 5, (uint64_t)width);
    assert_int_equal(vlp_file_read(corpus_path(c, "scratch.png"), 0, &png), VLP_OK);
    add_member(tar, name, png.data, png.len, '0');
    vlp_buf_free(&png);
}

static void put_tar(corpus *c, const char *name, vlp_buf *tar) {
    static const char end[2 * BLOCK];
    assert_int_equal(vlp_buf_append(tar, end, sizeof end), VLP_OK);
    corpus_bytes(c, name, tar->data, tar->len);
    vlp_buf_free(tar);
}

static void put_shard(corpus *c, const char *name, int first) {
    vlp_buf tar = {0};
    for (int i = first; i < first + 3; i++) {
        char member[64];
        snprintf(member, sizeof member, "s/%03d.png", i);
        add_picture(c, &tar, member, 10 + i);
        snprintf(member, sizeof member, "s/%03d.txt", i);
        add_text(&tar, member, i % 2 ? "odd\nodd" : "even");
        snprintf(member, sizeof member, "s/%03d.json", i);
        add_text(&tar, member, "{\"url\":\"u\",\"stars\":4}");
    }
    put_tar(c, name, &tar);
}

static int width_of(vlp_index *index, const char *item) {
    vlp_stmt *stmt;
    bool row;
    assert_int_equal(
        vlp_stmt_new(&stmt, vlp_index_db(index), "SELECT id FROM images WHERE item=?1"), VLP_OK);
    vlp_bind_text(stmt, 1, item, -1);
    assert_int_equal(vlp_stmt_step(stmt, &row), VLP_OK);
    assert_true(row);
    int64_t id = vlp_column_int(stmt, 0);
    vlp_stmt_free(stmt);
    vlp_reader *reader;
    vlp_located at;
    vlp_image image = {0};
    assert_int_equal(vlp_reader_open(&reader, vlp_index_path(index)), VLP_OK);
    assert_int_equal(vlp_reader_locate(reader, id, &at), VLP_OK);
    if (vlp_reader_pixels(reader, &at, &vlp_decode_defaults, 0, &image) != VLP_OK)
        fail_msg("%s", vlp_error());
    int width = image.width;
    vlp_image_free(&image);
    vlp_reader_free(reader);
    return width;
}

static void test_datasets_archives__shards_are_read_in_place(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    put_shard(&c, "t/shard-00.tar", 0);
    put_shard(&c, "t/shard-01.tar", 3);
    vlp_index *index = corpus_index(&c, "i.db");
    for (int run = 0; run < 2; run++) {
        vlp_import_report r =
            corpus_import(&c, index, "t/shard-{00..02}.tar", (vlp_import_options){0});
        assert_int_equal(r.images, 6);
        assert_int_equal(r.captions, 6);
        assert_int_equal(run ? r.unchanged : r.added, 6);
        assert_int_equal(r.by_reason[VLP_SKIP_MISSING], 1); /* shard-02 */
        assert_non_null(strstr(r.recognised, "webdataset, 2 archives with 6 pictures, 6 texts"));
    }
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='odd odd'"), 3);
    assert_int_equal(
        corpus_count(index, "SELECT count(*) FROM images WHERE json_extract(fields,'$.stars')=4"),
        6);
    assert_int_equal(width_of(index, "s/004.png"), 14);
    assert_int_equal(width_of(index, "s/000.png"), 10);
    vlp_verify_options verify = {.threads = 2};
    vlp_verify_report verified = {0};
    assert_int_equal(vlp_index_verify(index, &verify, &verified), VLP_OK);
    assert_int_equal(verified.good, 6);
    vlp_import_report r = corpus_import(&c, index, "t/*.tar", (vlp_import_options){0});
    assert_int_equal(r.unchanged, 6);
    r = corpus_import(&c, index, "t", (vlp_import_options){0}); /* a folder of shards */
    assert_int_equal(r.images, 6);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_archives__classes_become_captions(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_buf tar = {0};
    add_picture(&c, &tar, "0.png", 7);
    add_text(&tar, "0.cls", "1\n");
    add_picture(&c, &tar, "1.png", 8);
    add_text(&tar, "1.cls", "0");
    put_tar(&c, "c.tar", &tar);
    corpus_text(&c, "classes.txt", "cat\nbig_dog\n");
    corpus_text(&c, "templates.txt", "a {}\nthe {}\n");
    char classes[1100], templates[1100];
    snprintf(classes, sizeof classes, "%s", corpus_path(&c, "classes.txt"));
    snprintf(templates, sizeof templates, "%s", corpus_path(&c, "templates.txt"));
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(
        &c, index, "c.tar", (vlp_import_options){.classes = classes, .templates = templates});
    assert_int_equal(r.captions, 4);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='the big dog'"),
                     1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE label='cat'"), 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_archives__bad_members_are_named(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_buf tar = {0};
    add_picture(&c, &tar, "good.png", 9);
    add_text(&tar, "good.txt", "fine");
    add_picture(&c, &tar, "../../up.png", 9);
    add_picture(&c, &tar, "/etc/abs.png", 9);
    add_member(&tar, "link.png", "", 0, '2');
    add_text(&tar, "page.jpg", "<!doctype html>");
    add_text(&tar, "empty.png", "");
    add_text(&tar, "only.json", "{");
    put_tar(&c, "b.tar", &tar);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "b.tar", (vlp_import_options){0});
    assert_int_equal(r.images, 1);
    assert_int_equal(r.by_reason[VLP_SKIP_OUTSIDE], 2);
    assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_NOT_AN_IMAGE], 1);
    assert_int_equal(r.by_reason[VLP_SKIP_ZERO_BYTES], 1);
    assert_int_equal(r.skipped, 5);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_archives__a_cut_shard_keeps_what_is_whole(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    put_shard(&c, "whole.tar", 0);
    vlp_buf bytes = {0};
    assert_int_equal(vlp_file_read(corpus_path(&c, "whole.tar"), 0, &bytes), VLP_OK);
    corpus_bytes(&c, "cut.tar", bytes.data, bytes.len / 2);
    vlp_buf_free(&bytes);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "cut.tar", (vlp_import_options){0});
    assert_in_range(r.images, 1, 2);
    assert_int_equal(r.by_reason[VLP_SKIP_UNREADABLE], 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_archives__a_packed_tar_names_the_command(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_bytes(&c, "a.tar.gz", "\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = {0};
    vlp_import_options options = {0};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "a.tar.gz"), &options, &r),
                     VLP_ERR_UNSUPPORTED);
    assert_non_null(strstr(vlp_error(), "gunzip -k '"));
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_archives__zip_members_packed_or_not(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = {0};
    vlp_import_options options = {.check = true};
    if (vlp_index_import(index, VLP_TESTS_DIR "/data/datasets/photos.zip", &options, &r) != VLP_OK)
        fail_msg("%s", vlp_error());
    assert_int_equal(r.images, 3);
    assert_int_equal(r.captions, 1);
    assert_int_equal(r.by_reason[VLP_SKIP_OUTSIDE], 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE stored=2"), 2);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions c JOIN images i ON"
                                         " i.id=c.image_id WHERE text='a blue tile' AND width=20"),
                     1);
    assert_int_equal(width_of(index, "p/a.png"), 40);
    assert_int_equal(width_of(index, "p/b.png"), 20);
    assert_int_equal(width_of(index, "p/c.png"), 10);
    vlp_index_free(index);
    corpus_close(&c);
}

static vlp_status too_large(const vlp_member *member, void *user) {
    if (strcmp(member->name, "p/a.png") == 0) *(bool *)user = member->data == NULL;
    return VLP_OK;
}

static void test_datasets_archives__unpacking_is_bounded(void **state) {
    (void)state;
    vlp_map map;
    bool refused = false;
    const char *path = VLP_TESTS_DIR "/data/datasets/photos.zip";
    assert_int_equal(vlp_map_open(&map, path), VLP_OK);
    assert_int_equal(vlp_archive_each(path, map.data, map.len, 50, too_large, &refused), VLP_OK);
    assert_true(refused);
    vlp_map_close(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_archives__shards_are_read_in_place),
        cmocka_unit_test(test_datasets_archives__classes_become_captions),
        cmocka_unit_test(test_datasets_archives__bad_members_are_named),
        cmocka_unit_test(test_datasets_archives__a_cut_shard_keeps_what_is_whole),
        cmocka_unit_test(test_datasets_archives__a_packed_tar_names_the_command),
        cmocka_unit_test(test_datasets_archives__zip_members_packed_or_not),
        cmocka_unit_test(test_datasets_archives__unpacking_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
