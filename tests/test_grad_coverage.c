#include "core/ops.h"
#include "tests/grad_cases_attention.h"
#include "tests/grad_cases_elementwise.h"
#include "tests/grad_cases_embedding.h"
#include "tests/grad_cases_linear.h"
#include "tests/grad_cases_loss.h"
#include "tests/grad_cases_norm.h"
#include "tests/grad_cases_ranks.h"
#include "tests/grad_cases_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const gradcheck_case *cases;
    size_t count;
} tables[] = {
#define TABLE(x)                                                                                   \
    { grad_cases_##x, VLP_COUNT(grad_cases_##x) }
    TABLE(attention), TABLE(elementwise), TABLE(embedding), TABLE(linear),
    TABLE(loss),      TABLE(norm),        TABLE(ranks),     TABLE(rows),
#undef TABLE
};

static int cases_of(const char *op) {
    int found = 0;
    for (size_t t = 0; t < VLP_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++) found += !strcmp(tables[t].cases[i].op, op);
    return found;
}

static int ops_named(const char *op) {
    int found = 0;
    for (int i = 0; i < vlp_ops_count; i++) found += !strcmp(vlp_ops[i]->name, op);
    return found;
}

static void test_grad_coverage__every_op_has_a_case(void **state) {
    (void)state;
    int missing = 0;
    for (int i = 0; i < vlp_ops_count; i++) {
        if (cases_of(vlp_ops[i]->name) || gradcheck_exempt(vlp_ops[i]->name)) continue;
        print_error("no gradient case for the op %s\n", vlp_ops[i]->name);
        missing++;
    }
    assert_int_equal(missing, 0);
}

static void test_grad_coverage__every_case_names_one_op(void **state) {
    (void)state;
    for (size_t t = 0; t < VLP_COUNT(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            const gradcheck_case *c = &tables[t].cases[i];
            if (ops_named(c->op) != 1) print_error("%s: no op is called %s\n", c->name, c->op);
            assert_int_equal(ops_named(c->op), 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grad_coverage__every_op_has_a_case),
        cmocka_unit_test(test_grad_coverage__every_case_names_one_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
