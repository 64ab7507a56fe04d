#include "tools/captions.h"
#include "tools/folders.h"
#include "tools/pngtext.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    const char *raw, *author, *expected;
} row;

static void check(vlp_status clean(const char *, const char *, vlp_buf *), const row *rows,
                  size_t count) {
    vlp_buf out = {0};
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(clean(rows[i].raw, rows[i].author, &out), VLP_OK);
        assert_string_equal(out.data, rows[i].expected);
    }
    vlp_buf_free(&out);
}

static void test_corpus_captions__titles_become_plain_words(void **state) {
    static const row rows[] = {
        {"Traffic Light: Green", "Dan Gerhards", "traffic light green"},
        {"arrow-right-seagreen", "Benji Park", "arrow right sea green"},
        {"T-Shirt", NULL, "t-shirt"},
        {"Croissant (B &amp; W)", "Gerald G.", "croissant black and white"},
        {"Milk (B and W)", "Gerald G.", "milk black and white"},
        {"Lime (Wedge)", "Gerald G.", "lime wedge"},
        {"Telefono (email: frollandin@email.it)", NULL, "telefono"},
        {"Chalet di montagna Architetto Francesco Rollandin", "Architetto Francesco Rollandin",
         "chalet di montagna"},
        {"mouth - body part", "Nicu Buculei", "mouth"},
        {"balloon - red balloon", NULL, "balloon red"},
        {"go go dancer", NULL, "go dancer"},
        {"man to man", NULL, "man to man"},
        {"Elefante01", NULL, "elefante"},
        {"45 RPM Record", NULL, "45 rpm record"},
        {"8 Ball", NULL, "8 ball"},
        {"MP3 player", NULL, "mp3 player"},
        {"arrow heads 3 pattern", NULL, "arrow heads pattern"},
        {"danger g\xE9n\xE9ral", NULL, "danger g\xC3\xA9n\xC3\xA9ral"},
        {"Ch\xC3\x82teau", NULL, "ch\xC3\xA2teau"},
        {"Gelato all&#39;italiana", NULL, "gelato all'italiana"},
        {"hotel  -  hotel", NULL, "hotel"},
        {"007", NULL, ""},
        {"", NULL, ""},
        {" ( ", NULL, ""},
    };
    (void)state;
    check(caption_from_title, rows, VLP_COUNT(rows));
}

static void test_corpus_captions__file_names_lose_numbers_and_authors(void **state) {
    static const row rows[] = {
        {"apple_with_worm_dan_gerh_01", "Dan Gerhards", "apple with worm"},
        {"screwdriver_peterm_", "PeterM", "screwdriver"},
        {"television_alexander_d.__01", "Alexander D.", "television"},
        {"people_juliane_krug_03b", "Juliane Krug", "people"},
        {"smiley107", NULL, "smiley"},
        {"aiga_stairs_up1", NULL, "stairs up"},
        {"puffin-md", NULL, "puffin"},
        {"steak-v0.1", NULL, "steak"},
        {"bacon_bw_ganson", "Gerald G.", "bacon black and white"},
        {"guanti__e_pinze", NULL, "guanti e pinze"},
        {"aziendaVendite", NULL, "azienda vendite"},
        {"blowling_ball_01", NULL, "bowling ball"},
        {"usa_maryland", NULL, "united states maryland"},
    };
    (void)state;
    check(caption_from_stem, rows, VLP_COUNT(rows));
}

static void test_corpus_captions__sentences_give_sentence_and_subject(void **state) {
    static const struct {
        const char *raw, *sentence, *subject;
    } rows[] = {
        {"A frog.", "frog", "frog"},
        {"An inukshuk (or inuksuk), a landmark made of stones. It was used",
         "inukshuk a landmark made of stones", "inukshuk a landmark made of stones"},
        {"King. Can move one step in any direction. Protect him!", "king", "king"},
        {"A US 1 cent piece ($.01) called a penny.", "us 1 cent piece called a penny",
         "us 1 cent piece called a penny"},
        {"A candy cane is a traditional Christmas treat.",
         "candy cane is a traditional christmas treat", "candy cane"},
        {"\xE2\x80\x9CYield\xE2\x80\x9D means you have to let other people go first.",
         "yield means you have to let other people go first", "yield"},
        {"Tux\xE2\x80\x94the Linux mascot!", "tux the linux mascot", "tux the linux mascot"},
        {"This means something can be recycled.", "means something can be recycled", ""},
        {"", "", ""},
    };
    vlp_buf sentence = {0}, subject = {0};
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(rows); i++) {
        assert_int_equal(caption_from_sentence(rows[i].raw, &sentence), VLP_OK);
        assert_string_equal(sentence.data, rows[i].sentence);
        assert_int_equal(caption_subject(sentence.data, &subject), VLP_OK);
        assert_string_equal(subject.data, rows[i].subject);
    }
    vlp_buf_free(&sentence);
    vlp_buf_free(&subject);
}

static void test_corpus_captions__long_text_is_cut_between_characters(void **state) {
    char text[6001];
    vlp_buf out = {0};
    (void)state;
    for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xC3\xA9", 3);
    assert_int_equal(caption_from_title(text, NULL, &out), VLP_OK);
    assert_true(out.len >= 900 && out.len <= 1004);
    assert_int_equal(out.len % 2, 0);
    for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "a ", 3);
    assert_int_equal(caption_from_title(text, NULL, &out), VLP_OK);
    vlp_buf_free(&out);
}

static void test_corpus_captions__glossary_is_sorted_and_exact(void **state) {
    (void)state;
    assert_string_equal(caption_translate("gatto nero"), "black cat");
    assert_string_equal(caption_translate("abeille"), "bee");
    assert_string_equal(caption_translate("zucca"), "pumpkin");
    assert_string_equal(caption_translate("direction \xC3\xA0 suivre"), "direction arrow sign");
    assert_null(caption_translate("gatto"));
    assert_null(caption_translate(""));
}

static void test_corpus_captions__collections_and_descriptions_are_told_apart(void **state) {
    (void)state;
    assert_true(caption_is_collection("Clipart by Nicu Buculei - smiley111"));
    assert_true(caption_is_collection(" AIGA_Symbol_Signs"));
    assert_true(caption_is_collection(""));
    assert_false(caption_is_collection("Chess game"));
    assert_true(caption_is_description("Traffic light with green light on"));
    assert_false(caption_is_description("jean.victor.balin@gmail.com"));
    assert_false(caption_is_description("EPS converted from  http://aiga.org"));
    assert_false(caption_is_description("HASH(0x850c64c)"));
    assert_false(caption_is_description("sauvetage"));
}

static void test_corpus_captions__words_are_found_whole_or_as_plural(void **state) {
    (void)state;
    assert_true(caption_has_word("stop sign", "sign"));
    assert_true(caption_has_word("road signs", "sign"));
    assert_true(caption_has_word("dango, food", "dango"));
    assert_false(caption_has_word("designer shoe", "sign"));
    assert_false(caption_has_word("signal", "sign"));
}

static void test_corpus_captions__series_ignore_number_colour_and_mirror(void **state) {
    static const char *const same[][2] = {
        {"food/bacon_bw_ganson.png", "food/bacon_ganson.png"},
        {"shapes/jigsaw_red_01.png", "shapes/jigsaw_red_16.png"},
        {"ship/tugboat.png", "ship/tugboat_mirror.png"},
    };
    vlp_buf a = {0}, b = {0};
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(same); i++) {
        assert_int_equal(folder_series(same[i][0], NULL, &a), VLP_OK);
        assert_int_equal(folder_series(same[i][1], NULL, &b), VLP_OK);
        assert_string_equal(a.data, b.data);
    }
    assert_int_equal(folder_series("food/bacon.png", NULL, &a), VLP_OK);
    assert_int_equal(folder_series("food/bagel.png", NULL, &b), VLP_OK);
    assert_string_not_equal(a.data, b.data);
    vlp_buf_free(&a);
    vlp_buf_free(&b);
}

static void test_corpus_captions__png_texts_are_read_and_cut_files_survive(void **state) {
    static const char png[] = "\x89PNG\r\n\x1A\n"
                              "\0\0\0\x0ATitletEXt\0\0\0\0"
                              "\0\0\0\x0AtEXtTitle\0Frog...."
                              "\0\0\0\x0CtEXtAuthor\0Edith....";
    png_text text = {0};
    (void)state;
    for (size_t len = 0; len < sizeof png; len++) {
        uint8_t copy[sizeof png];
        memcpy(copy, png, len);
        assert_int_equal(png_text_read(&text, copy, len), VLP_OK);
    }
    static const char good[] = "\x89PNG\r\n\x1A\n"
                               "\0\0\0\x0AtEXtTitle\0Frog...."
                               "\0\0\0\x0CtEXtAuthor\0Edith....";
    assert_int_equal(png_text_read(&text, (const uint8_t *)good, sizeof good - 1), VLP_OK);
    assert_string_equal(text.title.data, "Frog");
    assert_string_equal(text.author.data, "Edith");
    assert_string_equal(text.description.data, "");
    png_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus_captions__titles_become_plain_words),
        cmocka_unit_test(test_corpus_captions__file_names_lose_numbers_and_authors),
        cmocka_unit_test(test_corpus_captions__sentences_give_sentence_and_subject),
        cmocka_unit_test(test_corpus_captions__long_text_is_cut_between_characters),
        cmocka_unit_test(test_corpus_captions__glossary_is_sorted_and_exact),
        cmocka_unit_test(test_corpus_captions__collections_and_descriptions_are_told_apart),
        cmocka_unit_test(test_corpus_captions__words_are_found_whole_or_as_plural),
        cmocka_unit_test(test_corpus_captions__series_ignore_number_colour_and_mirror),
        cmocka_unit_test(test_corpus_captions__png_texts_are_read_and_cut_files_survive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
