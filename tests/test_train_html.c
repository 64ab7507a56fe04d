/* Text in pages stays text, whatever it holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "train/html.h"
#include "train/report.h"

#include <string.h>

static void check(vlp_status (*write)(vlp_buf *, const char *), const char *text,
                  const char *expected) {
    vlp_buf page = {0};
    assert_int_equal(vlp_buf_puts(&page, ""), VLP_OK);
    assert_int_equal(write(&page, text), VLP_OK);
    assert_string_equal(page.data, expected);
    vlp_buf_free(&page);
}

static void test_train_html__markup_becomes_entities(void **state) {
    (void)state;
    check(vlp_html_text, "a <b> & \"c\" 'd'", "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
    check(vlp_html_text, "&amp;", "&amp;amp;");
    check(vlp_html_text, "", "");
}

static void test_train_html__other_scripts_pass_and_broken_bytes_do_not(void **state) {
    (void)state;
    check(vlp_html_text, "Ä 狗 🐶", "Ä 狗 🐶");
    check(vlp_html_text, "a\xFF<", "a\xEF\xBF\xBD&lt;");
    check(vlp_html_text, "cut \xE7\x8B", "cut \xEF\xBF\xBD\xEF\xBF\xBD");
    check(vlp_html_text, "bell\a\x1b", "bell\xEF\xBF\xBD\xEF\xBF\xBD");
    check(vlp_html_text, "two\nlines", "two\nlines");
}

static void test_train_html__addresses_are_percent_encoded(void **state) {
    (void)state;
    check(vlp_html_file_address, "/no such/a\"b#c?.png", "file:///no%20such/a%22b%23c%3F.png");
}

/* RFC 4648, section 10 */
static void test_train_html__base64_of_the_standard(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < VLP_COUNT(cases); i++) {
        vlp_buf out = {0};
        assert_int_equal(vlp_buf_puts(&out, ""), VLP_OK);
        assert_int_equal(vlp_base64(&out, (const uint8_t *)cases[i][0], strlen(cases[i][0])),
                         VLP_OK);
        assert_string_equal(out.data, cases[i][1]);
        vlp_buf_free(&out);
    }
}

static void test_train_html__csv_quotes_what_must_be(void **state) {
    (void)state;
    check(vlp_csv_quote, "plain words", "plain words");
    check(vlp_csv_quote, "a,b", "\"a,b\"");
    check(vlp_csv_quote, "say \"x\"", "\"say \"\"x\"\"\"");
    check(vlp_csv_quote, "two\nlines", "\"two\nlines\"");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_html__markup_becomes_entities),
        cmocka_unit_test(test_train_html__other_scripts_pass_and_broken_bytes_do_not),
        cmocka_unit_test(test_train_html__addresses_are_percent_encoded),
        cmocka_unit_test(test_train_html__base64_of_the_standard),
        cmocka_unit_test(test_train_html__csv_quotes_what_must_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
