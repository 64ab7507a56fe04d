#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/text_fixture.h"

#include "text/byte_bpe_train.h"

static vlp_tokenizer *train(const char *const *texts, int32_t vocab, int32_t least) {
    vlp_byte_bpe_trainer *trainer;
    vlp_tokenizer *t;
    assert_int_equal(
        vlp_byte_bpe_trainer_new(&trainer, &(vlp_byte_bpe_train_options){vocab, least}), VLP_OK);
    for (; *texts; texts++)
        assert_int_equal(vlp_byte_bpe_trainer_add(trainer, *texts, strlen(*texts)), VLP_OK);
    if (vlp_byte_bpe_trainer_finish(trainer, &t) != VLP_OK) fail_msg("%s", vlp_error());
    vlp_byte_bpe_trainer_free(trainer);
    return t;
}

static void test_text_byte_bpe_train__frequent_pairs_merge_first(void **state) {
    (void)state;
    static const char *const texts[] = {"low low low", "lower", "é", NULL};
    vlp_tokenizer *t = train(texts, 261 + 3, 0);
    assert_int_equal(vlp_tokenizer_size(t), 264);
    assert_string_equal(vlp_tokenizer_kind_name(t), "byte_bpe");
    /* "l o" and "o w" occur four times: the smaller left id wins; "Ġ low" twice */
    assert_string_equal(vlp_tokenizer_token(t, 261), "lo");
    assert_string_equal(vlp_tokenizer_token(t, 262), "low");
    assert_string_equal(vlp_tokenizer_token(t, 263), "Ġlow");
    text_check(t, true, "low lower é<mask>", "<s>|low|Ġlow|e|r|Ġ|Ã|©|<mask>|</s>");
    text_check_saved(t);
    vlp_tokenizer_free(t);
}

static void test_text_byte_bpe_train__rare_pairs_stay_apart(void **state) {
    (void)state;
    static const char *const texts[] = {"ab ab cd", NULL};
    vlp_tokenizer *t = train(texts, 1000, 0);
    assert_true(vlp_tokenizer_find(t, "ab") >= 0 && vlp_tokenizer_find(t, "cd") < 0);
    vlp_tokenizer_free(t);
    t = train(texts, 1000, 1);
    assert_true(vlp_tokenizer_find(t, "Ġcd") >= 0);
    vlp_tokenizer_free(t);
}

static void test_text_byte_bpe_train__order_of_texts_changes_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"a red car", "two red cars", "a dog", "the dogs", NULL};
    static const char *const turned[] = {"the dogs", "a dog", "two red cars", "a red car", NULL};
    vlp_tokenizer *a = train(texts, 290, 1), *b = train(turned, 290, 1);
    vlp_hash x = vlp_tokenizer_hash(a), y = vlp_tokenizer_hash(b);
    assert_true(x.high == y.high && x.low == y.low);
    vlp_tokenizer_free(a);
    vlp_tokenizer_free(b);
}

static void test_text_byte_bpe_train__what_cannot_be_is_said(void **state) {
    (void)state;
    vlp_byte_bpe_trainer *trainer;
    vlp_tokenizer *t;
    vlp_byte_bpe_train_options options = {.vocab_size = 260};
    assert_int_equal(vlp_byte_bpe_trainer_new(&trainer, &options), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "special tokens alone are 261"));
    options.vocab_size = 261;
    assert_int_equal(vlp_byte_bpe_trainer_new(&trainer, &options), VLP_OK);
    assert_int_equal(vlp_byte_bpe_trainer_add(trainer, "", 0), VLP_OK);
    assert_int_equal(vlp_byte_bpe_trainer_finish(trainer, &t), VLP_ERR_USAGE);
    assert_null(t);
    vlp_byte_bpe_trainer_free(trainer);
}

static void test_text_byte_bpe_train__every_failed_allocation_is_reported(void **state) {
    (void)state;
    int64_t failures = 0;
    for (vlp_status status = VLP_ERR_MEMORY; status != VLP_OK; failures += 3) {
        vlp_byte_bpe_trainer *trainer;
        vlp_tokenizer *t = NULL;
        vlp_alloc_fail_at(failures + 1);
        status = vlp_byte_bpe_trainer_new(&trainer, &(vlp_byte_bpe_train_options){270, 1});
        if (status == VLP_OK) status = vlp_byte_bpe_trainer_add(trainer, "a red car", 9);
        if (status == VLP_OK) status = vlp_byte_bpe_trainer_finish(trainer, &t);
        vlp_alloc_fail_at(0);
        if (status != VLP_OK) assert_int_equal(status, VLP_ERR_MEMORY);
        vlp_byte_bpe_trainer_free(trainer);
        vlp_tokenizer_free(t);
    }
    assert_true(failures > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_byte_bpe_train__frequent_pairs_merge_first),
        cmocka_unit_test(test_text_byte_bpe_train__rare_pairs_stay_apart),
        cmocka_unit_test(test_text_byte_bpe_train__order_of_texts_changes_nothing),
        cmocka_unit_test(test_text_byte_bpe_train__what_cannot_be_is_said),
        cmocka_unit_test(test_text_byte_bpe_train__every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
