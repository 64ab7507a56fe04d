/* Published corpora's layouts, and what must not come in. */
#include "datasets_corpus.h"

#include "datasets/filter.h"

static void pictures(corpus *c, const char *pattern, int n) {
    for (int i = 0; i < n; i++) {
        char name[64], number[16];
        snprintf(number, sizeof number, "%d", i);
        const char *hash = strchr(pattern, '#');
        snprintf(name, sizeof name, "%.*s%s%s", (int)(hash - pattern), pattern, number, hash + 1);
        corpus_png(c, name, 4 + i, 4, (uint64_t)i);
    }
}

static void test_datasets_importers__vqa_pairs_questions_and_answers(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, "COCO_val2014_00000000000#.jpg", 2);
    corpus_text(&c, "v2_OpenEnded_mscoco_val2014_questions.json",
                "{\"data_subtype\":\"val2014\",\"questions\":["
                "{\"image_id\":0,\"question\":\"What &amp; why?\",\"question_id\":70},"
                "{\"image_id\":1,\"question\":\"Who?\",\"question_id\":71},"
                "{\"image_id\":9,\"question\":\"Where?\",\"question_id\":72},"
                "{\"image_id\":1,\"question\":\" \",\"question_id\":73}]}");
    corpus_text(&c, "v2_mscoco_val2014_annotations.json",
                "{\"annotations\":[{\"question_id\":70,\"answers\":[{\"answer\":\"dog\"},"
                "{\"answer\":\"cat\"},{\"answer\":\"dog\"},{\"answer\":\"\"}]},"
                "{\"question_id\":5,\"answers\":[]}]}");
    vlp_index *index = corpus_index(&c, "i.db");
    for (int run = 0; run < 2; run++) {
        vlp_import_report r = corpus_import(&c, index, "v2_OpenEnded_mscoco_val2014_questions.json",
                                            (vlp_import_options){0});
        assert_non_null(strstr(r.recognised, "vqa, 2 questions, 1 with answers from"));
        assert_int_equal(r.questions, 2);
        assert_int_equal(r.by_reason[VLP_SKIP_MISSING], 1);
        assert_int_equal(r.by_reason[VLP_SKIP_EMPTY_CAPTION], 1);
        assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
        assert_int_equal(corpus_count(index, "SELECT count(*) FROM questions"), 2);
        assert_int_equal(corpus_count(index, "SELECT votes FROM answers JOIN questions ON"
                                             " id=question_id WHERE number=70 AND"
                                             " questions.text='What & why?' AND"
                                             " answers.text='dog'"),
                         2);
    }
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE split='val'"), 2);
    corpus_text(
        &c, "list.json",
        "[{\"question_id\":1,\"question\":\"q\",\"image\":\"COCO_val2014_000000000000.jpg\","
        "\"answer\":[\"a\",\"a\",\"b\"]}]");
    vlp_import_report r = corpus_import(&c, index, "list.json", (vlp_import_options){0});
    assert_int_equal(r.questions, 1);
    assert_int_equal(corpus_count(index, "SELECT sum(votes) FROM answers"), 6);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_importers__genome_llava_cc_and_flickr(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, "VG_100K_2/#.jpg", 3);
    corpus_text(&c, "region_descriptions.json",
                "[{\"regions\":[{\"region_id\":1,\"image_id\":1,\"phrase\":\"a door\"},"
                "{\"region_id\":2,\"image_id\":1,\"phrase\":\"a wall\"}],\"id\":1},{\"id\":7}]");
    corpus_text(&c, "llava.json",
                "[{\"image\":\"VG_100K_2/0.jpg\",\"conversations\":[{\"from\":\"human\",\"value\":"
                "\"<image>\\nDescribe it.\"},{\"from\":\"gpt\",\"value\":\"a picture\"}]},"
                "{\"image\":\"VG_100K_2/1.jpg\",\"conversations\":[{\"from\":\"human\",\"value\":"
                "\"What is it?<image>\"},{\"from\":\"gpt\",\"value\":\"noise\"}]},"
                "{\"conversations\":[]}]");
    corpus_text(&c, "cc.tsv", "a hill\thttp://x/0\nno file\thttp://x/9\n");
    corpus_text(&c, "map.tsv", "http://x/0\tVG_100K_2/0.jpg\n");
    corpus_text(&c, "k.token", "2.jpg#0\tone dog\n2.jpg#1\ttwo dogs\nbroken line\n");
    corpus_png(&c, "Images/2.jpg", 9, 9, 99);
    corpus_text(&c, "Flickr_8k.testImages.txt", "2.jpg\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r =
        corpus_import(&c, index, "region_descriptions.json", (vlp_import_options){0});
    assert_non_null(strstr(r.recognised, "genome, 1 pictures with 2 regions"));
    assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
    r = corpus_import(&c, index, "llava.json", (vlp_import_options){0});
    assert_int_equal(r.captions, 1);
    assert_int_equal(r.questions, 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM questions WHERE text='What is it?'"),
                     1);
    vlp_import_options options = {0};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "cc.tsv"), &options, &r),
                     VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "--map"));
    char map[1100];
    snprintf(map, sizeof map, "%s", corpus_path(&c, "map.tsv"));
    r = corpus_import(&c, index, "cc.tsv", (vlp_import_options){.map = map});
    assert_int_equal(r.captions, 1);
    assert_int_equal(r.by_reason[VLP_SKIP_MISSING], 1);
    r = corpus_import(&c, index, "k.token", (vlp_import_options){0});
    assert_int_equal(r.captions, 2);
    assert_int_equal(r.by_reason[VLP_SKIP_BAD_ROW], 1);
    assert_int_equal(
        corpus_count(index, "SELECT count(*) FROM images WHERE split='test' AND width=9"), 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_importers__a_manifest_in_each_split_folder(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    pictures(&c, "hf/train/#.png", 2);
    corpus_png(&c, "hf/validation/v.png", 8, 8, 70);
    corpus_text(&c, "hf/train/metadata.csv", "file_name,text\n0.png,zero\n1.png,one\n");
    corpus_text(&c, "hf/validation/metadata.jsonl", "{\"file_name\":\"v.png\",\"text\":\"v\"}\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "hf", (vlp_import_options){0});
    assert_int_equal(r.images, 3);
    assert_int_equal(r.captions, 3);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE split='val'"), 1);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM sources WHERE name='hf-train'"), 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_importers__names_cannot_leave_the_folder(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "in/a.png", 4, 4, 1);
    corpus_png(&c, "out.png", 4, 4, 2);
    char in[1100], line[2600];
    snprintf(in, sizeof in, "%s", corpus_path(&c, "in"));
    snprintf(line, sizeof line,
             "image,caption\n../out.png,x\nb/../../out.png,x\n%s/../out.png,x\n%s/out.png,x\n"
             "b/../a.png,x\na.png,x\n",
             in, c.folder);
    corpus_text(&c, "in/rows.csv", line);
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r =
        corpus_import(&c, index, "in/rows.csv", (vlp_import_options){.images = in});
    assert_int_equal(r.by_reason[VLP_SKIP_OUTSIDE], 4);
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM images WHERE path LIKE '%out.png'"),
                     0);
    corpus_text(&c, "in/rows.jsonl",
                "{\"image\":\"../out.png\",\"caption\":\"x\"}\n"
                "{\"image\":\"a.png\",\"caption\":7}\n");
    r = corpus_import(&c, index, "in/rows.jsonl", (vlp_import_options){0});
    assert_int_equal(r.by_reason[VLP_SKIP_OUTSIDE], 1);
    assert_int_equal(r.captions, 1); /* a number is a caption too */
    assert_int_equal(corpus_count(index, "SELECT count(*) FROM captions WHERE text='7'"), 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_importers__captions_that_say_nothing_are_empty(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "a.png", 4, 4, 1);
    static const char rows[] = "image,caption\na.png,\0\0\na.png,\xC0\xFF\na.png,ok\n";
    corpus_bytes(&c, "rows.csv", rows, sizeof rows - 1);
    corpus_text(&c, "rows.jsonl",
                "{\"image\":\"a.png\",\"caption\":\"\\u0000\"}\n"
                "{\"image\":\"a.png\",\"caption\":\"\xFF\"}\n"
                "{\"image\":\"a.png\",\"caption\":\"y\"}\n");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = corpus_import(&c, index, "rows.csv", (vlp_import_options){0});
    assert_int_equal(r.by_reason[VLP_SKIP_EMPTY_CAPTION], 2);
    assert_int_equal(r.captions, 1);
    r = corpus_import(&c, index, "rows.jsonl", (vlp_import_options){0});
    assert_int_equal(r.by_reason[VLP_SKIP_EMPTY_CAPTION], 2);
    assert_int_equal(r.captions, 1);
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_importers__foreign_files_name_the_conversion(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_text(&c, "a.parquet", "PAR1....");
    vlp_index *index = corpus_index(&c, "i.db");
    vlp_import_report r = {0};
    vlp_import_options options = {.format = "csv"};
    assert_int_equal(vlp_index_import(index, corpus_path(&c, "a.parquet"), &options, &r),
                     VLP_ERR_UNSUPPORTED);
    assert_non_null(strstr(vlp_error(), "duckdb -c \"COPY (SELECT * FROM '"));
    options = (vlp_import_options){.split = "test", .split_hash = "90,5,5"};
    assert_int_equal(vlp_index_import(index, c.folder, &options, &r), VLP_ERR_USAGE);
    options = (vlp_import_options){.split_hash = "90,5,6"};
    assert_int_equal(vlp_index_import(index, c.folder, &options, &r), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "make 101, not 100"));
    vlp_index_free(index);
    corpus_close(&c);
}

static void test_datasets_importers__unknown_fields_of_a_filter_are_refused(void **state) {
    (void)state;
    corpus c;
    corpus_open(&c);
    corpus_png(&c, "a.png", 4, 4, 1);
    corpus_text(&c, "rows.csv", "image,caption,stars\na.png,x,4\n");
    vlp_index *index = corpus_index(&c, "i.db");
    corpus_import(&c, index, "rows.csv", (vlp_import_options){0});
    const struct {
        const char *where, *hint;
    } cases[] = {{"stars>3", NULL},
                 {"starts>3", "did you mean \"stars\""},
                 {"widht>3", "did you mean \"width\""},
                 {"zzzzzzzz=1", "no image has a field \"zzzzzzzz\""}};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        vlp_filter filter;
        assert_int_equal(vlp_filter_parse(&filter, cases[i].where, 1), VLP_OK);
        vlp_status status = vlp_filter_check(&filter, vlp_index_db(index));
        assert_int_equal(status, cases[i].hint ? VLP_ERR_USAGE : VLP_OK);
        if (cases[i].hint) assert_non_null(strstr(vlp_error(), cases[i].hint));
        vlp_filter_free(&filter);
    }
    vlp_index_free(index);
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_importers__vqa_pairs_questions_and_answers),
        cmocka_unit_test(test_datasets_importers__genome_llava_cc_and_flickr),
        cmocka_unit_test(test_datasets_importers__a_manifest_in_each_split_folder),
        cmocka_unit_test(test_datasets_importers__names_cannot_leave_the_folder),
        cmocka_unit_test(test_datasets_importers__captions_that_say_nothing_are_empty),
        cmocka_unit_test(test_datasets_importers__foreign_files_name_the_conversion),
        cmocka_unit_test(test_datasets_importers__unknown_fields_of_a_filter_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
