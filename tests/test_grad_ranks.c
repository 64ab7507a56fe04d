#include "tests/grad_cases_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_grad_ranks__agrees_with_differences(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(grad_cases_ranks); i++)
        assert_true(gradcheck_run(&grad_cases_ranks[i], 1e-6) <= 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_grad_ranks__agrees_with_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
