/* The runner must be able to say no: it is run on altered copies of a case. */
#include "core/file.h"
#include "core/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CASE(name) VLP_TESTS_DIR "/data/parity/" name

static const char *original = CASE("optim-adamw"); /* the case that is copied */
static char folder[256];
static vlp_buf output;

static const char *const files[] = {"case.json", "config.json", "model.safetensors",
                                    "inputs.safetensors", "expected.safetensors"};

static char *in_folder(const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void copy(const char *name) {
    vlp_buf bytes = {0};
    char from[400];
    snprintf(from, sizeof from, "%s/%s", original, name);
    assert_int_equal(vlp_file_read(from, 0, &bytes), VLP_OK);
    assert_int_equal(vlp_file_write(in_folder(name), bytes.data, bytes.len), VLP_OK);
    vlp_buf_free(&bytes);
}

static int copy_case(void **state) {
    if (*state) original = *state;
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-parity-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return -1;
    for (size_t i = 0; i < VLP_COUNT(files); i++) copy(files[i]);
    return 0;
}

static int remove_case(void **state) {
    (void)state;
    for (size_t i = 0; i < VLP_COUNT(files); i++) unlink(in_folder(files[i]));
    vlp_buf_free(&output);
    original = CASE("optim-adamw");
    return rmdir(folder);
}

/* The exit code; what was printed goes to `output`. */
static int run_parity(const char *target) {
    char command[900], piece[4096];
    vlp_buf_clear(&output);
    snprintf(command, sizeof command, "'%s' '%s' 2>&1", VLP_PARITY, target);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    for (size_t n; (n = fread(piece, 1, sizeof piece, pipe)) > 0;)
        assert_int_equal(vlp_buf_append(&output, piece, n), VLP_OK);
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Copies expected.safetensors; the first element of `name` moves by `shift`, and a tensor `extra`
 * is added. */
static void alter(const char *name, float shift, const char *extra) {
    vlp_safetensors *file;
    vlp_safetensors_writer *writer;
    vlp_safetensor_spec specs[200];
    char path[400];
    snprintf(path, sizeof path, "%s/expected.safetensors", original);
    assert_int_equal(vlp_safetensors_open(&file, path), VLP_OK);
    size_t n = vlp_safetensors_count(file);
    assert_true(n + 1 < VLP_COUNT(specs));
    for (size_t i = 0; i < n; i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i);
        specs[i] = (vlp_safetensor_spec){t->name, t->dtype, t->ndim, {0}};
        memcpy(specs[i].shape, t->shape, sizeof specs[i].shape);
    }
    specs[n] = (vlp_safetensor_spec){extra, VLP_ST_F32, 1, {2}};
    assert_int_equal(vlp_safetensors_writer_begin(&writer, in_folder("expected.safetensors"), specs,
                                                  extra ? n + 1 : n, NULL, 0),
                     VLP_OK);
    for (size_t i = 0; i < n; i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i);
        vlp_buf bytes = {0};
        assert_int_equal(vlp_buf_append(&bytes, t->data, t->bytes), VLP_OK);
        if (name && strcmp(t->name, name) == 0) {
            float value;
            memcpy(&value, bytes.data, sizeof value);
            value += shift;
            memcpy(bytes.data, &value, sizeof value);
            name = NULL;
        }
        assert_int_equal(vlp_safetensors_writer_write(writer, bytes.data, t->bytes), VLP_OK);
        vlp_buf_free(&bytes);
    }
    assert_null(name); /* it was there */
    const float zeros[2] = {0};
    if (extra) assert_int_equal(vlp_safetensors_writer_write(writer, zeros, sizeof zeros), VLP_OK);
    assert_int_equal(vlp_safetensors_writer_commit(writer), VLP_OK);
    vlp_safetensors_close(file);
}

/* The line of the output that begins with name and a space. */
static const char *line_of(const char *name) {
    static char line[300];
    size_t n = strlen(name);
    for (const char *p = output.data; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, name, n) != 0 || p[n] != ' ') continue;
        size_t len = strcspn(p, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(len < 299 ? len : 299), p);
        return line;
    }
    return "";
}

/* The limit is 5e-6 x max(1, max|e|): half of it passes, twice fails. */
static void test_parity_runner__a_value_beyond_the_limit_fails(void **state) {
    (void)state;
    alter("lr", 2.5e-6f, NULL);
    assert_int_equal(run_parity(folder), 0);
    assert_non_null(strstr(line_of("lr"), "PASS"));
    alter("lr", 1e-5f, NULL);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(line_of("lr"), "FAIL"));
    assert_non_null(strstr(line_of("grad_norm"), "PASS"));
    assert_non_null(strstr(output.data, ": FAIL, 85 of 86"));
}

static void test_parity_runner__a_value_that_is_no_number_fails(void **state) {
    (void)state;
    alter("grad_norm", NAN, NULL);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(line_of("grad_norm"), "not finite  FAIL"));
}

/* In bfloat16 the limit is 1e-2 of the whole tensor. */
static void test_parity_runner__bf16_has_its_own_limit(void **state) {
    (void)state;
    static const char bf16[] = "--precision' 'bf16' '";
    char arguments[400];
    snprintf(arguments, sizeof arguments, "%s%s", bf16, folder);
    assert_int_equal(run_parity(arguments), 0);
    assert_non_null(strstr(line_of("last_hidden_state"), "limit 1.00e-02  PASS"));
    assert_null(strstr(output.data, "grad/"));
    alter("last_hidden_state", 3, NULL);
    assert_int_equal(run_parity(arguments), 1);
    assert_non_null(strstr(line_of("last_hidden_state"), "FAIL"));
    assert_int_equal(run_parity("--precision' 'half"), 2);
}

static void test_parity_runner__what_is_not_computed_fails(void **state) {
    (void)state;
    alter(NULL, 0, "param.99.unheard_of");
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(line_of("param.99.unheard_of"), "not computed  FAIL"));
    assert_non_null(strstr(output.data, "86 of 87 within the limit, 1 not computed"));
}

static void test_parity_runner__another_shape_fails(void **state) {
    (void)state;
    vlp_buf config = {0};
    assert_int_equal(vlp_file_read(CASE("optim-adamw") "/config.json", 0, &config), VLP_OK);
    char *steps = strstr(config.data, "\"steps\": 10");
    assert_non_null(steps);
    memcpy(steps, "\"steps\": 9 ", 11);
    assert_int_equal(vlp_file_write(in_folder("config.json"), config.data, config.len), VLP_OK);
    vlp_buf_free(&config);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(line_of("lr"), "the expected shape is [10]  FAIL"));
}

/* The limit is 1e-6 + 1e-4 x 2.57, the largest value of that gradient. */
static void test_parity_runner__a_gradient_beyond_the_limit_fails(void **state) {
    (void)state;
    const char *name = "grad/encoder.layer.1.attention.attention.value.weight";
    alter(name, 1.3e-4f, NULL);
    assert_int_equal(run_parity(folder), 0);
    assert_non_null(strstr(line_of(name), "PASS"));
    alter(name, 5.2e-4f, NULL);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(line_of(name), "FAIL"));
    assert_non_null(strstr(output.data, ": FAIL, 47 of 48"));
}

static void test_parity_runner__another_activation_fails(void **state) {
    (void)state;
    vlp_buf config = {0};
    assert_int_equal(vlp_file_read(in_folder("config.json"), 0, &config), VLP_OK);
    char *act = strstr(config.data, "\"gelu\"");
    assert_non_null(act);
    memcpy(act, "\"relu\"", 6);
    assert_int_equal(vlp_file_write(in_folder("config.json"), config.data, config.len), VLP_OK);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(line_of("hidden_states/0"), "PASS"));
    assert_non_null(strstr(line_of("hidden_states/1"), "FAIL"));
    memcpy(act, "\"gulu\"", 6);
    assert_int_equal(vlp_file_write(in_folder("config.json"), config.data, config.len), VLP_OK);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(output.data, "hidden_act is \"gulu\"; known are gelu, gelu_new"));
    vlp_buf_free(&config);
}

static void test_parity_runner__a_case_that_cannot_run_fails(void **state) {
    (void)state;
    const char *unknown = "{\"system\": \"none such\", \"mode\": \"m\"}";
    assert_int_equal(vlp_file_write(in_folder("case.json"), unknown, strlen(unknown)), VLP_OK);
    assert_int_equal(run_parity(folder), 1);
    assert_non_null(strstr(output.data, "no runner for system \"none such\", mode \"m\""));
    copy("case.json");
    unlink(in_folder("model.safetensors"));
    assert_int_equal(run_parity(folder), 1);
    assert_int_equal(run_parity("/nowhere"), 2);
    assert_non_null(strstr(output.data, "/nowhere/case.json"));
}

int main(void) {
    static char model_case[] = CASE("vit-hf-model");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(
            test_parity_runner__a_gradient_beyond_the_limit_fails, copy_case, remove_case,
            model_case),
        cmocka_unit_test_prestate_setup_teardown(test_parity_runner__another_activation_fails,
                                                 copy_case, remove_case, model_case),
        cmocka_unit_test_prestate_setup_teardown(test_parity_runner__bf16_has_its_own_limit,
                                                 copy_case, remove_case, model_case),
        cmocka_unit_test_setup_teardown(test_parity_runner__a_value_beyond_the_limit_fails,
                                        copy_case, remove_case),
        cmocka_unit_test_setup_teardown(test_parity_runner__a_value_that_is_no_number_fails,
                                        copy_case, remove_case),
        cmocka_unit_test_setup_teardown(test_parity_runner__what_is_not_computed_fails, copy_case,
                                        remove_case),
        cmocka_unit_test_setup_teardown(test_parity_runner__another_shape_fails, copy_case,
                                        remove_case),
        cmocka_unit_test_setup_teardown(test_parity_runner__a_case_that_cannot_run_fails, copy_case,
                                        remove_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
