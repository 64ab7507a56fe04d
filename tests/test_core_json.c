/* Values of a wrong type are refused, with file, key and what is wanted. */
#include "core/json.h"
#include "core/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const vlp_json_typed keys[] = {{"name", VLP_JSON_STRING},
                                      {"text.width", VLP_JSON_INTEGER},
                                      {"text.rate", VLP_JSON_NUMBER},
                                      {"text.deep.on", VLP_JSON_BOOL},
                                      {"rest", VLP_JSON_OBJECT}};

typedef struct {
    int64_t width;
} sizes;
static const vlp_option rows[] = {
    {"text.width", VLP_OPTION_INT, offsetof(sizes, width), 0, 0, "7", "", NULL}};
static const vlp_options table = {rows, VLP_COUNT(rows)};

/* Both ways of reading; a picky NULL: the table does not look at that key. */
static void refused(const char *text, const char *expect, const char *pick) {
    vlp_json *json;
    sizes s;
    assert_int_equal(vlp_json_parse(&json, text, strlen(text), "f.json"), VLP_OK);
    assert_int_equal(vlp_json_expect(json, keys, VLP_COUNT(keys), "f.json"),
                     expect ? VLP_ERR_FORMAT : VLP_OK);
    if (expect) assert_string_equal(vlp_error(), expect);
    vlp_options_defaults(table, &s);
    assert_int_equal(vlp_options_pick(table, &s, json, "f.json") != VLP_OK, pick != NULL);
    if (pick) assert_string_equal(vlp_error(), pick);
    vlp_json_free(json);
}

static void test_core_json__wrong_types_are_named_with_what_is_wanted(void **state) {
    (void)state;
    refused("{}", NULL, NULL);
    refused("{\"name\":null,\"text\":null,\"rest\":{}}", NULL, NULL);
    refused("{\"name\":\"x\",\"text\":{\"width\":3,\"rate\":1,\"deep\":{\"on\":true}}}", NULL,
            NULL);
    refused("{\"name\":5}", "f.json: \"name\" must be a string", NULL);
    refused("{\"rest\":[]}", "f.json: \"rest\" must be an object", NULL);
    refused("{\"text\":{\"rate\":\"1\"}}", "f.json: \"text.rate\" must be a number", NULL);
    refused("{\"text\":{\"deep\":{\"on\":1}}}", "f.json: \"text.deep.on\" must be true or false",
            NULL);
    refused("{\"text\":{\"deep\":true}}", "f.json: \"text.deep\" must be an object", NULL);
    refused("{\"text\":{\"width\":true}}", "f.json: \"text.width\" must be a whole number",
            "f.json: \"text.width\" must be a whole number");
    refused("{\"text\":5}", "f.json: \"text\" must be an object",
            "f.json: \"text\" must be an object");
    refused("[]", "f.json: a JSON object is wanted", "f.json: a JSON object is wanted");
}

static void test_core_json__integers_of_any_length(void **state) {
    (void)state;
    static const char text[] =
        "{\"max\": 1000000000000000019884624838656, \"min\": -1000000000000000019884624838656, "
        "\"same\": 12345678901234567890.5, \"name\": \"a\\\"99999999999999999999\\\\\", \"small\": "
        "7}";
    vlp_json *json;
    if (vlp_json_parse(&json, text, strlen(text), "x") != VLP_OK) fail_msg("%s", vlp_error());
    assert_true(vlp_json_double(json, "max", 0) == 1e30);
    assert_true(vlp_json_double(json, "min", 0) == -1e30);
    assert_true(vlp_json_double(json, "same", 0) == 12345678901234567890.5);
    assert_string_equal(vlp_json_string(json, "name", ""), "a\"99999999999999999999\\");
    assert_true(vlp_json_is_integer(vlp_json_key(json, "small")));
    vlp_json_free(json);
    static const char bad[] = "{\"max\": 1000000000000000019884624838656, }";
    assert_int_equal(vlp_json_parse(&json, bad, strlen(bad), "x"), VLP_ERR_FORMAT);
    assert_non_null(strstr(vlp_error(), "x:1:"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_core_json__wrong_types_are_named_with_what_is_wanted),
        cmocka_unit_test(test_core_json__integers_of_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
