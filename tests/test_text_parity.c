#include "tests/parity/tokenizer.c" /* shared with the parity runner */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void run_case(const char *name) {
    const char *root = getenv("VLP_PARITY_DIR");
    if (!root) {
        print_message("skipped: set VLP_PARITY_DIR to the folder that holds %s\n", name);
        skip();
    }
    vlp_buf folder = {0};
    assert_int_equal(vlp_path_join(&folder, root, name), VLP_OK);
    int failures = 0;
    vlp_status status = parity_tokenizer(folder.data, stdout, &failures);
    vlp_buf_free(&folder);
    if (status != VLP_OK) fail_msg("%s", vlp_error());
    assert_int_equal(failures, 0);
}

static void test_text_parity__bert_uncased(void **state) {
    (void)state;
    run_case("tokenizer-bert-uncased");
}

static void test_text_parity__bert_cased(void **state) {
    (void)state;
    run_case("tokenizer-bert-cased");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_parity__bert_uncased),
        cmocka_unit_test(test_text_parity__bert_cased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
