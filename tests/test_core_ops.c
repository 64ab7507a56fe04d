#include "core/file.h"
#include "core/ops.h"
#include "tests/gradcheck.h"

#include <ctype.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void append_files(vlp_buf *text, const char *pattern) {
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_int_equal(vlp_file_read(found.gl_pathv[i], 0, text), VLP_OK);
    globfree(&found);
}

/* A row of a table of gradient cases: {"what it shows", "op", number of inputs, ...}. */
static bool has_case(const char *text, const char *op) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\",", op);
    for (const char *at = strstr(text, quoted); at; at = strstr(at + 1, quoted)) {
        const char *next = at + strlen(quoted);
        next += strspn(next, " \n");
        if (isdigit((unsigned char)*next)) return true;
    }
    return false;
}

static void test_core_ops__every_op_has_a_gradient_case(void **state) {
    (void)state;
    vlp_buf text = {0};
    append_files(&text, VLP_TESTS_DIR "/test_grad_*.c");
    append_files(&text, VLP_TESTS_DIR "/grad_cases_*.h");
    assert_false(has_case(text.data, "no_such_op"));
    for (int i = 0; i < vlp_ops_count; i++)
        if (!has_case(text.data, vlp_ops[i]->name) && !gradcheck_exempt(vlp_ops[i]->name))
            fail_msg("op %s has no gradient case in tests/test_grad_*.c", vlp_ops[i]->name);
    vlp_buf_free(&text);
}

static void test_core_ops__rows_are_whole_and_names_differ(void **state) {
    (void)state;
    assert_true(vlp_ops_count > 0);
    for (int i = 0; i < vlp_ops_count; i++) {
        assert_non_null(vlp_ops[i]->forward);
        assert_non_null(vlp_ops[i]->backward);
        for (int k = 0; k < i; k++) assert_string_not_equal(vlp_ops[i]->name, vlp_ops[k]->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_ops__every_op_has_a_gradient_case),
        cmocka_unit_test(test_core_ops__rows_are_whole_and_names_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
