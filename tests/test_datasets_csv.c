#include "datasets/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

/* Reads everything: fields joined by '/', records by '|', bad records as '!'. */
static void assert_reads(const char *text, char delimiter, const char *expected) {
    vlp_csv csv;
    vlp_csv_open(&csv, text, strlen(text), delimiter);
    vlp_buf got = {0};
    assert_int_equal(vlp_buf_puts(&got, ""), VLP_OK);
    while (true) {
        bool more;
        const char *bad;
        assert_int_equal(vlp_csv_next(&csv, &more, &bad), VLP_OK);
        if (!more) break;
        if (got.len) vlp_buf_puts(&got, "|");
        if (bad) vlp_buf_puts(&got, "!");
        for (size_t i = 0; i < csv.fields; i++)
            vlp_buf_printf(&got, "%s%s", i ? "/" : "", vlp_csv_field(&csv, i));
    }
    assert_string_equal(got.data, expected);
    vlp_buf_free(&got);
    vlp_csv_close(&csv);
}

static void test_datasets_csv__quotes_newlines_and_blanks(void **state) {
    (void)state;
    assert_reads("a,b\n1,2\n", ',', "a/b|1/2");
    assert_reads("a,b\r\n1,2\r\n", ',', "a/b|1/2");
    assert_reads("\xEF\xBB\xBFx,y", ',', "x/y");
    assert_reads("\"a,b\",\"c\"\"d\"\n", ',', "a,b/c\"d");
    assert_reads("\"two\nlines\",z\nq,r", ',', "two\nlines/z|q/r");
    assert_reads(" a , b \n", ',', "a/b");
    assert_reads("5\" disk,x\n", ',', "5\" disk/x");
    assert_reads("a,,\n\n\nb", ',', "a//|b");
    assert_reads("x| y| z\n", '|', "x/y/z");
    assert_reads("\"\",\"\"", ',', "/");
    assert_reads("", ',', "");
    assert_reads("\n\r\n", ',', "");
}

static void test_datasets_csv__open_quote_costs_one_line(void **state) {
    (void)state;
    assert_reads("a,\"open\nb,c\nd,e", ',', "!|b/c|d/e");
}

static void test_datasets_csv__lines_are_counted_through_newlines_in_fields(void **state) {
    (void)state;
    const char *text = "h,i\n\n\"a\nb\nc\",1\nd,2\n";
    vlp_csv csv;
    vlp_csv_open(&csv, text, strlen(text), ',');
    int64_t lines[] = {1, 3, 6};
    for (int i = 0; i < 3; i++) {
        bool more;
        const char *bad;
        assert_int_equal(vlp_csv_next(&csv, &more, &bad), VLP_OK);
        assert_true(more);
        assert_int_equal(csv.line, lines[i]);
    }
    vlp_csv_close(&csv);
}

static void test_datasets_csv__delimiter_is_sniffed(void **state) {
    (void)state;
    assert_int_equal(vlp_csv_delimiter("a;b;c,d\n", 8), ';');
    assert_int_equal(vlp_csv_delimiter("\"a,b,c\"|d\n", 10), '|');
    assert_int_equal(vlp_csv_delimiter("a\tb", 3), '\t');
    assert_int_equal(vlp_csv_delimiter("abc\nd,e", 7), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_datasets_csv__quotes_newlines_and_blanks),
        cmocka_unit_test(test_datasets_csv__open_quote_costs_one_line),
        cmocka_unit_test(test_datasets_csv__lines_are_counted_through_newlines_in_fields),
        cmocka_unit_test(test_datasets_csv__delimiter_is_sniffed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
