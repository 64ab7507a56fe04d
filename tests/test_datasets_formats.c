#include "datasets_corpus.h"

#include "datasets/caption.h"
#include "datasets/reader.h"

static void pictures(corpus *c, int n) {
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "i/%d.png", i);
        corpus_png(c, name, 4 + i, 4, (uint64_t)i);
    }
}

static void test_datasets_formats__csv_with_any_header_and_delimiter(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, 3);
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_text(&c, "a.csv", "Filepath,Title,views\ni/0.png,\"one, two\",7\ni/0.png,again,7\n");
    vlp_import_report r = corpus_import(&c, index, "a.csv", (vlp_import_options){0});
    assert_int_equal(r.images, 1);
    assert_int_equal(r.captions, 2);
    assert_non_null(strstr(r.recognised, "\"Title\""));
    corpus_text(&c, "b.csv", "image_name| comment_number| comment\ni/1.png| 0| a dog\n");
    r = corpus_import(&c, index, "b.csv", (vlp_import_options){0});
    assert_int_equal(r.captions, 1);
    corpus_text(&c, "c.tsv", "i/2.png\tno header here\n");
    r = corpus_import(&c, index, "c.tsv", (vlp_import_options){0});
    assert_int_equal(r.captions, 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text IN"
                                         " ('one, two','again','a dog','no header here')"),
                     4);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_formats__unknown_column_is_named_with_the_cure(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_text(&c, "a.csv", "foo,bar\n1,2\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = {0};
    vlp_import_options options = {0};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "a.csv"), &options, &r),
                     VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "\"foo\", \"bar\""));
    assert_non_null(strstr(vlp_error(), "--image-key"));
    options.format = "parquet";
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "a.csv"), &options, &r),
                     VLP_ERR_USAGE);
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "none"), &options, &r),
                     VLP_ERR_NOT_FOUND);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_formats__zero_usable_rows_is_an_error(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_text(&c, "a.csv", "image,caption\nnone.png,x\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = {0};
    vlp_import_options options = {0};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "a.csv"), &options, &r),
                     VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "missing"));
    vlp_index_free(index);
    corpus_close(&c);
}

static const char coco[] =
    "{\"info\":{\"year\":2014,\"x\":[1,{\"images\":2}]},\n"
    " \"annotations\":[{\"image_id\":9,\"id\":1,\"caption\":\"a cat\"},\n"
    "  {\"image_id\":9,\"id\":2,\"caption\":\"a cat\"},{\"image_id\":5,\"id\":3,\"caption\":\" \"},"
    "  {\"image_id\":77,\"id\":4,\"caption\":\"lost\"},"
    "  {\"image_id\":5,\"id\":5,\"caption\":\"a \\\"dog]\\\"\"}],\n"
    " \"images\":[{\"id\":9,\"file_name\":\"0.png\"},{\"id\":5,\"file_name\":\"1.png\"}]}";

static void test_datasets_formats__coco_joins_images_and_captions(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, 2);
    corpus_text(&c, "coco.json", coco);
    vlp_index *index = corpus_index(&c, "i.db");
    char images[1100];
    snprintf(images, sizeof images, "%s", corpus_path(&c, "i"));
    for (int run = 0; run < 2; run++) {
        vlp_import_report r =
            corpus_import(&c, index, "coco.json", (vlp_import_options){.images = images});
        assert_int_equal(r.images, 2);
        assert_int_equal(r.captions, 3); /* equal captions stay two */
        assert_int_equal(r.by_reason[VLP_SKIP_EMPTY_CAPTION], 1);
        assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
        assert_int_equal(run ? r.unchanged : r.added, 2);
        assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions"), 3);
    }
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_formats__albef_and_karpathy(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, 4);
    corpus_text(&c, "albef.json",
                "[{\"image\":\"i/0.png\",\"caption\":\"x\"},\n"
                "{\"image\":\"i/1.png\",\"caption\":[\"y\",\"z\"]}]");
    corpus_text(&c, "dataset.json",
                "{\"images\":[{\"filepath\":\"i\",\"filename\":\"2.png\",\"split\":\"test\","
                "\"sentences\":[{\"raw\":\"p\"},{\"raw\":\"q\"}]},"
                "{\"filepath\":\"i\",\"filename\":\"3.png\",\"split\":\"restval\","
                "\"sentences\":[{\"raw\":\"r\"}]}],\"dataset\":\"k\"}");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "albef.json", (vlp_import_options){0});
    assert_non_null(strstr(r.recognised, "albef"));
    assert_int_equal(r.captions, 3);
    r = corpus_import(&c, index, "dataset.json", (vlp_import_options){0});
    assert_non_null(strstr(r.recognised, "karpathy"));
    assert_int_equal(r.captions, 3);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE split='test'"), 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_formats__json_cut_off_is_an_error(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, 1);
    corpus_text(&c, "albef.json", "[{\"image\":\"i/0.png\",\"caption\":\"x\"},{\"image");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = {0};
    vlp_import_options options = {0};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "albef.json"), &options, &r),
                     VLP_ERR_FORMAT);
    vlp_index_free(index);
    corpus_close(&c);
}

static void put_idx(corpus *c, const char *images, const char *labels, int n) {
    uint8_t pixels[16 + 100 * 6] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, 2, 0, 0, 0, 3};
    uint8_t classes[8 + 100] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)n};
    for (int i = 0; i < n * 6; i++) pixels[16 + i] = (uint8_t)(i * 7);
    for (int i = 0; i < n; i++) classes[8 + i] = (uint8_t)(i % 3);
    corpus_bytes(c, images, pixels, 16 + (size_t)n * 6);
    corpus_bytes(c, labels, classes, 8 + (size_t)n);
}

static void test_datasets_formats__idx_is_addressed_in_place(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    put_idx(&c, "m/train-images-idx3-ubyte", "m/train-labels-idx1-ubyte", 10);
    put_idx(&c, "m/t10k-images-idx3-ubyte", "m/t10k-labels-idx1-ubyte", 2);
    corpus_text(&c, "classes.txt", "shirt\nankle_boot\nbag\n");
    corpus_text(&c, "templates.txt", "a photo of a {}.\nthe {}\n");
    char classes[1100], templates[1100];
    snprintf(classes, sizeof classes, "%s", corpus_path(&c, "classes.txt"));
    snprintf(templates, sizeof templates, "%s", corpus_path(&c, "templates.txt"));
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_options options = {.classes = classes, .templates = templates};
    vlp_import_report r = corpus_import(&c, index, "m", options);
    assert_int_equal(r.images, 12);
    assert_int_equal(r.captions, 24);
    assert_int_equal(r.crossed, 2); /* the first two images equal test images */
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE split='test'"), 4);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='a photo of a"
                                         " ankle boot.'"),
                     4);
    int64_t id = corpus_count(index, "SELECT id FROM images WHERE offset=22 LIMIT 1");
    vlp_reader *reader;
    assert_int_equal(vlp_reader_open(&reader, vlp_index_path(index)), VLP_OK);
    vlp_located at;
    vlp_image image = {0};
    assert_int_equal(vlp_reader_locate(reader, id, &at), VLP_OK);
    assert_int_equal(vlp_reader_pixels(reader, &at, &vlp_decode_defaults, 0, &image), VLP_OK);
    assert_int_equal(image.width, 3);
    assert_int_equal(image.height, 2);
    for (int i = 0; i < 18; i++) assert_int_equal(image.pixels[i], (6 + i / 3) * 7);
    vlp_image_free(&image);
    vlp_reader_free(reader);
    r = corpus_import(&c, index, "m", options);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_formats__imagefolder_and_text(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "f/train/cat/a.png", 4, 4, 1);
    corpus_png(&c, "f/test/big_dog/b.png", 4, 4, 2);
    corpus_png(&c, "f/loose.png", 4, 4, 3);
    corpus_text(&c, "lines.txt", "first line\n\n second\nfirst line\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r =
        corpus_import(&c, index, "f", (vlp_import_options){.format = "imagefolder"});
    assert_int_equal(r.images, 2);
    assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images i JOIN captions c ON"
                                         " c.image_id=i.id WHERE i.split='test' AND text='big dog'"
                                         " AND label='big_dog'"),
                     1);
    for (int run = 0; run < 2; run++) {
        r = corpus_import(&c, index, "lines.txt", (vlp_import_options){.split_hash = "50,25,25"});
        assert_int_equal(r.texts, 3);
        assert_int_equal(run ? r.unchanged : r.added, 3);
    }
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE image_id IS NULL"),
                     3);
    assert_int_equal(corpus_count(index, "SELECT count(DISTINCT split) FROM captions WHERE"
                                         " text='first line'"),
                     1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void
test_datasets_formats__split_follows_content_and_duplicates_stay_together(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "p/%d.png", i);
        corpus_png(&c, name, 4, 4, (uint64_t)(i % 150));
    }
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r =
        corpus_import(&c, index, "p", (vlp_import_options){.split_hash = "80,10,10"});
    assert_int_equal(r.duplicates, 50);
    assert_int_equal(r.crossed, 0);
    assert_int_equal(corpus_count(index, "SELECT count(DISTINCT hash) FROM images"), 150);
    assert_int_equal(corpus_count(index, "SELECT count(DISTINCT group_id) FROM images"), 150);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM (SELECT hash FROM images GROUP BY"
                                         " hash HAVING count(DISTINCT split)>1)"),
                     0);
    assert_in_range(corpus_count(index, "SELECT count(*) FROM images WHERE split='train'"), 130,
                    185);
    assert_true(corpus_count(index, "SELECT count(*) FROM images WHERE split='val'") > 2);
    corpus_png(&c, "q/again.png", 4, 4, 0);
    r = corpus_import(&c, index, "q", (vlp_import_options){.split = "test"});
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE split='test' AND"
                                         " group_id=1"),
                     3);
    vlp_json *stats;
    assert_int_equal(vlp_index_stats(index, &stats), VLP_OK);
    assert_int_equal(vlp_json_int(stats, "images", 0), 201);
    assert_int_equal(vlp_json_int(stats, "duplicates", 0), 51);
    assert_int_equal(vlp_json_int(stats, "image_size.median", 0), 4);
    vlp_json_free(stats);
    vlp_index_free(index);
    corpus_close(&c);
}

static void assert_clean(const char *text, size_t len, const char *expected, bool repaired) {
    vlp_buf out = {0};
    bool was;
    assert_int_equal(vlp_caption_clean(&out, text, len, &was), VLP_OK);
    assert_string_equal(out.data, expected);
    assert_int_equal(was, repaired);
    vlp_buf_free(&out);
}

static void test_datasets_formats__captions_are_cleaned(void **state) {
    (void)state;
    assert_clean("a\r\n b\t c ", 8, "a b c", false);
    assert_clean("x\0y", 3, "xy", true);
    assert_clean("\xC0z\xE2\x82", 4, "\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD", true);
    assert_clean("Tom &amp; Jerry&#39;s &#x263A; &bogus; &", 40,
                 "Tom & Jerry's \xE2\x98\xBA &bogus; &", false);
    assert_clean("\xF0\x9F\x98\x80 \xD7\xA9\xD7\x9C", 9, "\xF0\x9F\x98\x80 \xD7\xA9\xD7\x9C",
                 false);
    assert_clean("cafe\xCC\x81", 6, "caf\xC3\xA9", false); /* composed */
    assert_true(vlp_caption_hash("A Dog.", 6) == vlp_caption_hash("a dog", 5));
    assert_true(vlp_caption_hash("a dog", 5) != vlp_caption_hash("a dot", 5));
    char *longest = malloc(100000);
    memset(longest, 'x', 100000);
    vlp_buf out = {0};
    bool was;
    assert_int_equal(vlp_caption_clean(&out, longest, 10000, &was), VLP_OK);
    assert_int_equal(out.len, 10000);
    assert_false(was);
    assert_int_equal(vlp_caption_clean(&out, longest, 100000, &was), VLP_OK);
    assert_int_equal(out.len, VLP_CAPTION_MAX);
    assert_true(was);
    vlp_buf_free(&out);
    free(longest);
}

static void test_datasets_formats__check_finds_what_headers_hide(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "p/a.png", 40, 40, 1);
    vlp_buf png = {0};
    assert_int_equal(vlp_file_read(corpus_path(&c, "p/a.png"), 0, &png), VLP_OK);
    corpus_bytes(&c, "p/half.png", png.data, png.len / 2);
    vlp_buf_free(&png);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "p", (vlp_import_options){.check = true});
    assert_int_equal(r.images, 1);
    assert_int_equal(r.by_reason[VLP_SKIP_UNDECODABLE], 1);
    r = corpus_import(&c, index, "p", (vlp_import_options){0});
    assert_int_equal(r.by_reason[VLP_SKIP_UNDECODABLE], 1);
    assert_int_equal(r.unchanged, 1);
    vlp_index_free(index);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_formats__csv_with_any_header_and_delimiter),
        cmocka_unit_test(test_datasets_formats__unknown_column_is_named_with_the_cure),
        cmocka_unit_test(test_datasets_formats__zero_usable_rows_is_an_error),
        cmocka_unit_test(test_datasets_formats__coco_joins_images_and_captions),
        cmocka_unit_test(test_datasets_formats__albef_and_karpathy),
        cmocka_unit_test(test_datasets_formats__json_cut_off_is_an_error),
        cmocka_unit_test(test_datasets_formats__idx_is_addressed_in_place),
        cmocka_unit_test(test_datasets_formats__imagefolder_and_text),
        cmocka_unit_test(test_datasets_formats__split_follows_content_and_duplicates_stay_together),
        cmocka_unit_test(test_datasets_formats__captions_are_cleaned),
        cmocka_unit_test(test_datasets_formats__check_finds_what_headers_hide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
