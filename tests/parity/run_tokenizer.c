#include "parity/runners.h"

#include "text/tokenizer.h"

#include "core/file.h"
#include "core/json.h"

#include <string.h>

/* How a system's cases are meant. */
typedef struct {
    const char *system;
    bool special; /* ids include what stands around a text */
    bool literal; /* ids_no_special, or ids where there are none, are of the text read literally */
    bool raw;     /* ids are of the text read literally only */
    const char *vocabulary; /* a publisher's, in ../vocab beside the cases; NULL = in the case */
} form;

static const form forms[] = {
    {"BERT WordPiece", false, true, false, NULL},
    {"CLIP BPE", false, false, false, "bpe_simple_vocab_16e6.txt.gz"},
    {"GPT-2 byte-level BPE", false, false, false, "encoder.json"},
    {"RoBERTa byte-level BPE", true, false, false, NULL},
    {"tokenizer.json (HF fast tokenizer format)", true, false, false, NULL},
    {"SentencePiece", false, true, true, NULL},
    {"LLaMA SentencePiece BPE (real 32000 vocabulary)", false, true, true, "tokenizer.model"},
};

typedef struct {
    const form *form;
    const char *file; /* of which an entry is looked at */
    vlp_tokenizer *tokenizer;
    parity_report *report;
    int first, other; /* texts on which two references disagree: with which vlp agrees */
    int shown;        /* differences printed so far */
    int32_t *ids;
    uint8_t *types;
    int room;
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
        if (r->ids[i] == vlp_tokenizer_special(r->tokenizer).unk) continue; /* its text is shown */
        if (!token || strcmp(token, vlp_json_as_string(vlp_json_at(expected, (size_t)i))) != 0)
            return false;
    }
    return true;
}

/* A line of its own for each of the first few entries that differ. */
static void show(run *r, const char *what, size_t entry, int n, const vlp_json *expected) {
    enum { LINES = 8, IDS = 30 };
    char name[96], got[IDS * 8] = "", want[IDS * 8] = "";
    if (r->shown++ >= LINES) return;
    snprintf(name, sizeof name, "%s[%zu] %s", r->file, entry, what);
    for (int i = 0; i < n && i < IDS; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), " %d", r->ids[i]);
    for (size_t i = 0; i < vlp_json_len(expected) && i < IDS; i++)
        snprintf(want + strlen(want), sizeof want - strlen(want), " %lld",
                 (long long)vlp_json_as_int(vlp_json_at(expected, i)));
    parity_check(r->report, name, false, "%d ids%s, expected %zu%s", n, got, vlp_json_len(expected),
                 want);
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

/* The ids, or where two references disagree and the case says so, those of the other one. */
static bool ids_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    if (r->form->raw) return true;
    const vlp_json *ids = vlp_json_key(entry, "ids"), *other = vlp_json_key(entry, "other_ids");
    int n = vlp_tokenizer_encode(r->tokenizer, bytes->data, bytes->len, r->form->special, r->ids,
                                 r->room);
    if (same_ids(r, n, ids)) {
        r->first += other != NULL;
        return true;
    }
    if (other && same_ids(r, n, other)) {
        r->other++;
        return true;
    }
    show(r, "text", index, n, ids);
    return false;
}

/* Special tokens in the text as ordinary text: what is stated, or the same where nothing is. */
static bool literal_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    const vlp_json *ids = vlp_json_key(entry, "ids_no_special");
    if (!ids && !r->form->literal) return true;
    if (!ids) ids = vlp_json_key(entry, "ids");
    int n = vlp_tokenizer_encode_literal(r->tokenizer, bytes->data, bytes->len, r->ids, r->room);
    if (same_ids(r, n, ids)) return true;
    show(r, "literal text", index, n, ids);
    return false;
}

/* With what a system's own class puts around a text and finds in it. */
static bool wrapped_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    static const char *const keys[] = {"t5_ids", "llama_ids", "albert_ids", "xlnet_ids",
                                       "siglip_ids"};
    for (size_t i = 0; i < VLP_COUNT(keys); i++) {
        const vlp_json *ids = vlp_json_key(entry, keys[i]);
        if (!ids) continue;
        int n = vlp_tokenizer_encode(r->tokenizer, bytes->data, bytes->len, true, r->ids, r->room);
        if (same_ids(r, n, ids)) continue;
        show(r, keys[i], index, n, ids);
        return false;
    }
    return true;
}

static bool tokens_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    if (r->form->raw) return true;
    int n = vlp_tokenizer_encode(r->tokenizer, bytes->data, bytes->len, false, r->ids, r->room);
    if (same_tokens(r, n, vlp_json_key(entry, "tokens"))) return true;
    show(r, "tokens of text", index, n, vlp_json_key(entry, "ids"));
    return false;
}

static bool padded_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    const vlp_json *ids = vlp_json_key(entry, "context77");
    int n = (int)vlp_json_len(ids);
    if (n == 0) return true;
    vlp_tokenizer_encode_padded(r->tokenizer, bytes->data, bytes->len, n, r->ids, NULL);
    if (same_ids(r, n, ids)) return true;
    show(r, "padded text", index, n, ids);
    return false;
}

/* Equal but for byte order marks, which one reference's decoder of UTF-8 swallows. */
static bool same_but_marks(const char *a, const char *b) {
    static const char mark[] = "\xEF\xBB\xBF";
    for (;;) {
        while (strncmp(a, mark, 3) == 0) a += 3;
        while (strncmp(b, mark, 3) == 0) b += 3;
        if (*a != *b) return false;
        if (!*a) return true;
        a++;
        b++;
    }
}

/* The case decodes without WordPiece's clean-up of spaces, which vlp always does. */
static bool decoded_entry(run *r, size_t index, const vlp_json *entry) {
    const char *text = vlp_json_string(entry, "decoded", NULL);
    const vlp_json *ids = vlp_json_key(entry, "ids");
    if (!text || strcmp(vlp_tokenizer_kind_name(r->tokenizer), "wordpiece") == 0) return true;
    int n = (int)vlp_json_len(ids);
    for (int i = 0; i < n; i++) r->ids[i] = (int32_t)vlp_json_as_int(vlp_json_at(ids, (size_t)i));
    vlp_buf out = {0};
    bool good = vlp_tokenizer_decode(r->tokenizer, r->ids, n, !r->form->raw, &out) == VLP_OK &&
                same_but_marks(out.data ? out.data : "", text);
    if (!good) {
        char name[64];
        snprintf(name, sizeof name, "%s[%zu] decoded", r->file, index);
        parity_check(r->report, name, false, "\"%.80s\", expected \"%.80s\"",
                     out.data ? out.data : vlp_error(), text);
    }
    vlp_buf_free(&out);
    return good;
}

static bool text_entry(run *r, size_t index, const vlp_json *entry, const vlp_buf *bytes) {
    bool good = ids_entry(r, index, entry, bytes);
    good &= literal_entry(r, index, entry, bytes);
    if (!vlp_json_key(entry, "other_ids")) good &= tokens_entry(r, index, entry, bytes);
    good &= padded_entry(r, index, entry, bytes);
    good &= wrapped_entry(r, index, entry, bytes);
    return decoded_entry(r, index, entry) && good;
}

/* Types are compared but for byte-level BPE: RoBERTa has one type only, which the library of the
 * tokenizer.json cases does not know. */
static bool same_types(const run *r, int n, const vlp_json *expected) {
    if (!vlp_json_is_array(expected) ||
        strcmp(vlp_tokenizer_kind_name(r->tokenizer), "byte_bpe") == 0)
        return true;
    for (int i = 0; i < n; i++)
        if (r->types[i] != vlp_json_as_int(vlp_json_at(expected, (size_t)i))) return false;
    return true;
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
    good = good && (n < 0 || same_types(r, n, types));
    if (!good) show(r, "pair", index, n, ids);
    return good;
}

/* The case's own tokenizer, or a publisher's vocabulary beside the cases. */
static vlp_status open_run(run *r, const parity_case *c, parity_report *report) {
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    *r = (run){.report = report, .room = 1 << 17};
    for (size_t i = 0; i < VLP_COUNT(forms); i++)
        if (strcmp(c->system, forms[i].system) == 0) r->form = &forms[i];
    VLP_ASSERT(r->form, "no form for %s", c->system);
    VLP_TRY_DONE(vlp_buf_puts(&path, c->folder));
    if (r->form->vocabulary)
        VLP_TRY_DONE(vlp_buf_printf(&path, "/../vocab/%s", r->form->vocabulary));
    VLP_TRY_DONE(vlp_tokenizer_open(&r->tokenizer, path.data));
    r->ids = vlp_alloc((size_t)r->room * sizeof *r->ids);
    r->types = vlp_alloc((size_t)r->room);
    if (!r->ids || !r->types) status = VLP_ERR_MEMORY;
done:
    vlp_buf_free(&path);
    return status;
}

static vlp_status run_file(run *r, const parity_case *c, const char *file, bool pairs) {
    vlp_buf path = {0}, bytes = {0};
    vlp_json *entries = NULL;
    vlp_status status = VLP_OK;
    int bad = 0;
    r->file = file;
    r->shown = 0;
    VLP_TRY_DONE(parity_path(c, file, &path));
    if (pairs && !vlp_path_exists(path.data)) goto done;
    VLP_TRY_DONE(vlp_json_load(&entries, path.data));
    for (size_t i = 0; i < vlp_json_len(entries); i++) {
        const vlp_json *entry = vlp_json_at(entries, i);
        VLP_TRY_DONE(bytes_of(entry, &bytes));
        bad += !(pairs ? pair_entry(r, i, entry) : text_entry(r, i, entry, &bytes));
    }
    parity_check(r->report, file, bad == 0 && vlp_json_len(entries) > 0,
                 "%s, %zu entries, %d differ", vlp_tokenizer_kind_name(r->tokenizer),
                 vlp_json_len(entries), bad);
done:
    vlp_json_free(entries);
    vlp_buf_free(&path);
    vlp_buf_free(&bytes);
    return status;
}

vlp_status parity_run_tokenizer(const parity_case *c, parity_report *report) {
    run r;
    vlp_status status = open_run(&r, c, report);
    if (status == VLP_OK) status = run_file(&r, c, "texts.json", false);
    if (status == VLP_OK) status = run_file(&r, c, "pairs.json", true);
    if (r.first + r.other > 0)
        parity_check(report, "disagreements", true,
                     "of the case's two references: %d as the first, %d as the other", r.first,
                     r.other);
    vlp_tokenizer_free(r.tokenizer);
    vlp_free(r.ids);
    vlp_free(r.types);
    return status;
}
