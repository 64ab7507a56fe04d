#include "tests/parity/tokenizer.h"

#include "text/tokenizer.h"

#include "core/file.h"
#include "core/json.h"

#include <string.h>

typedef struct {
    vlp_tokenizer *tokenizer;
    int32_t *ids;
    uint8_t *types;
    int room;
    FILE *out;
} run;

static bool same_ids(const run *r, int n, const vlp_json *expected) {
    if ((size_t)n != vlp_json_len(expected)) return false;
    for (int i = 0; i < n; i++)
        if (r->ids[i] != vlp_json_as_int(vlp_json_at(expected, (size_t)i))) return false;
    return true;
}

static bool same_tokens(const run *r, int n, const vlp_json *expected) {
    if (!expected) return true; /* left out for the longest texts */
    if ((size_t)n != vlp_json_len(expected)) return false;
    for (int i = 0; i < n; i++) {
        const char *token = vlp_tokenizer_token(r->tokenizer, r->ids[i]);
        if (!token || strcmp(token, vlp_json_as_string(vlp_json_at(expected, (size_t)i))) != 0)
            return false;
    }
    return true;
}

static void show(const run *r, const char *what, size_t entry, int n, const vlp_json *expected) {
    fprintf(r->out, "  DIFFERS %s %zu: got", what, entry);
    for (int i = 0; i < n && i < 40; i++) fprintf(r->out, " %d", r->ids[i]);
    fprintf(r->out, " | expected");
    for (size_t i = 0; i < vlp_json_len(expected) && i < 40; i++)
        fprintf(r->out, " %lld", (long long)vlp_json_as_int(vlp_json_at(expected, i)));
    fputc('\n', r->out);
}

static vlp_status bytes_of(const vlp_json *entry, vlp_buf *bytes) {
    vlp_buf_clear(bytes);
    const char *hex = vlp_json_string(entry, "hex", NULL);
    if (!hex) return vlp_buf_puts(bytes, vlp_json_string(entry, "text", ""));
    for (; hex[0] && hex[1]; hex += 2) {
        unsigned value = 0;
        if (sscanf(hex, "%2x", &value) != 1)
            return VLP_FAIL(VLP_ERR_FORMAT, "hex: \"%s\" is not hexadecimal", hex);
        char byte = (char)value;
        VLP_TRY(vlp_buf_append(bytes, &byte, 1));
    }
    return VLP_OK;
}

static bool text_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    bool plain = vlp_json_key(entry, "ids_no_special") || vlp_json_key(entry, "hex");
    const vlp_json *ids = vlp_json_key(entry, "ids");
    int n = vlp_tokenizer_encode(r->tokenizer, bytes->data, bytes->len, false, r->ids, r->room);
    bool good = same_ids(r, n, ids) && same_tokens(r, n, vlp_json_key(entry, "tokens"));
    if (!good) show(r, "text", index, n, ids);
    const vlp_json *literal = vlp_json_key(entry, "ids_no_special");
    if (!literal) literal = ids;
    n = vlp_tokenizer_encode_literal(r->tokenizer, bytes->data, bytes->len, r->ids, r->room);
    if (same_ids(r, n, literal)) return good;
    show(r, plain ? "literal text" : "text read literally", index, n, literal);
    return false;
}

static bool pair_entry(run *r, size_t index, const vlp_json *entry) {
    static const struct {
        const char *name;
        vlp_truncate value;
    } names[] = {{"longest_first", VLP_TRUNCATE_LONGEST},
                 {"only_first", VLP_TRUNCATE_FIRST},
                 {"only_second", VLP_TRUNCATE_SECOND}};
    vlp_truncate truncate = VLP_TRUNCATE_LONGEST;
    const char *name = vlp_json_string(entry, "truncation", "longest_first");
    for (size_t i = 0; i < VLP_COUNT(names); i++)
        if (strcmp(name, names[i].name) == 0) truncate = names[i].value;
    const char *first = vlp_json_string(entry, "text", ""),
               *second = vlp_json_string(entry, "pair", "");
    int max = (int)vlp_json_int(entry, "max_length", r->room);
    const vlp_json *ids = vlp_json_key(entry, "ids"),
                   *types = vlp_json_key(entry, "token_type_ids");
    int n = vlp_tokenizer_encode_pair(r->tokenizer, (vlp_text){first, strlen(first)},
                                      (vlp_text){second, strlen(second)}, truncate, r->ids,
                                      r->types, max);
    /* Where the named text alone cannot make room, the reference leaves the pair too long. */
    bool good = n < 0 ? vlp_json_len(ids) > (size_t)max : same_ids(r, n, ids);
    for (int i = 0; good && i < n; i++)
        good = r->types[i] == vlp_json_as_int(vlp_json_at(types, (size_t)i));
    if (!good) show(r, "pair", index, n, ids);
    return good;
}

static vlp_status open_run(run *r, const char *folder, FILE *out) {
    *r = (run){.out = out, .room = 1 << 17};
    VLP_TRY(vlp_tokenizer_open(&r->tokenizer, folder));
    r->ids = vlp_alloc((size_t)r->room * sizeof *r->ids);
    r->types = vlp_alloc((size_t)r->room);
    return r->ids && r->types ? VLP_OK : VLP_ERR_MEMORY;
}

static vlp_status run_file(run *r, const char *folder, const char *file, bool pairs,
                           int *failures) {
    vlp_buf path = {0}, bytes = {0};
    vlp_json *entries = NULL;
    vlp_status status = VLP_OK;
    int bad = 0;
    VLP_TRY_DONE(vlp_path_join(&path, folder, file));
    if (pairs && !vlp_path_exists(path.data)) goto done;
    VLP_TRY_DONE(vlp_json_load(&entries, path.data));
    for (size_t i = 0; i < vlp_json_len(entries); i++) {
        const vlp_json *entry = vlp_json_at(entries, i);
        VLP_TRY_DONE(bytes_of(entry, &bytes));
        bad += !(pairs ? pair_entry(r, i, entry) : text_entry(r, i, entry, &bytes));
    }
    fprintf(r->out, "%s %s: %zu entries, %d differ: %s\n", folder, file, vlp_json_len(entries), bad,
            bad ? "FAIL" : "PASS");
    *failures += bad;
done:
    vlp_json_free(entries);
    vlp_buf_free(&path);
    vlp_buf_free(&bytes);
    return status;
}

vlp_status parity_tokenizer(const char *folder, FILE *out, int *failures) {
    run r;
    vlp_status status = open_run(&r, folder, out);
    if (status == VLP_OK) status = run_file(&r, folder, "texts.json", false, failures);
    if (status == VLP_OK) status = run_file(&r, folder, "pairs.json", true, failures);
    vlp_tokenizer_free(r.tokenizer);
    vlp_free(r.ids);
    vlp_free(r.types);
    return status;
}
