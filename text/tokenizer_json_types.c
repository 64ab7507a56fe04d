/* What the keys of a tokenizer.json must hold. Readers look values up with fallbacks, so that a
 * wrong type would pass for an absent key: it is refused here, before. */
#include "text/tokenizer_json.h"

#include <stdio.h>

static const vlp_json_typed file_keys[] = {
    {"added_tokens", VLP_JSON_ARRAY},
    {"normalizer", VLP_JSON_OBJECT},
    {"pre_tokenizer", VLP_JSON_OBJECT},
    {"post_processor", VLP_JSON_OBJECT},
    {"model", VLP_JSON_OBJECT},
    {"model.type", VLP_JSON_STRING},
    {"model.unk_token", VLP_JSON_STRING},
    {"model.unk_id", VLP_JSON_INTEGER},
    {"model.continuing_subword_prefix", VLP_JSON_STRING},
    {"model.end_of_word_suffix", VLP_JSON_STRING},
    {"model.max_input_chars_per_word", VLP_JSON_INTEGER},
    {"model.byte_fallback", VLP_JSON_BOOL},
    {"model.ignore_merges", VLP_JSON_BOOL},
    {"model.dropout", VLP_JSON_NUMBER},
    {"model.merges", VLP_JSON_ARRAY},
};

static const vlp_json_typed token_keys[] = {
    {"id", VLP_JSON_INTEGER},       {"content", VLP_JSON_STRING}, {"special", VLP_JSON_BOOL},
    {"single_word", VLP_JSON_BOOL}, {"lstrip", VLP_JSON_BOOL},    {"rstrip", VLP_JSON_BOOL},
};

/* Of a normalizer, a pre_tokenizer and a post_processor, and of the members of their sequences. */
static const vlp_json_typed part_keys[] = {
    {"type", VLP_JSON_STRING},
    {"clean_text", VLP_JSON_BOOL},
    {"lowercase", VLP_JSON_BOOL},
    {"handle_chinese_chars", VLP_JSON_BOOL},
    {"strip_accents", VLP_JSON_BOOL},
    {"pattern", VLP_JSON_OBJECT},
    {"pattern.Regex", VLP_JSON_STRING},
    {"pattern.String", VLP_JSON_STRING},
    {"content", VLP_JSON_STRING},
    {"prepend", VLP_JSON_STRING},
    {"precompiled_charsmap", VLP_JSON_STRING},
    {"add_prefix_space", VLP_JSON_BOOL},
    {"use_regex", VLP_JSON_BOOL},
    {"replacement", VLP_JSON_STRING},
    {"cls", VLP_JSON_ARRAY},
    {"sep", VLP_JSON_ARRAY},
    {"single", VLP_JSON_ARRAY},
    {"pair", VLP_JSON_ARRAY},
    {"special_tokens", VLP_JSON_OBJECT},
};

/* Of what stands in a template. */
static const vlp_json_typed item_keys[] = {
    {"Sequence", VLP_JSON_OBJECT},          {"Sequence.id", VLP_JSON_STRING},
    {"Sequence.type_id", VLP_JSON_INTEGER}, {"SpecialToken", VLP_JSON_OBJECT},
    {"SpecialToken.id", VLP_JSON_STRING},   {"SpecialToken.type_id", VLP_JSON_INTEGER},
};

/* Each member of object.key. */
static vlp_status check_list(const vlp_json *object, const char *key, const char *where,
                             const vlp_json_typed *keys, size_t n) {
    const vlp_json *list = vlp_json_key(object, key);
    char name[80];
    for (size_t i = 0; i < vlp_json_len(list); i++) {
        snprintf(name, sizeof name, "%s%s%s[%zu]", where, where[0] ? "." : "", key, i);
        VLP_TRY(vlp_json_expect(vlp_json_at(list, i), keys, n, name));
    }
    return VLP_OK;
}

static vlp_status check_part(const vlp_json *json, const char *name, const char *sequence) {
    const vlp_json *part = vlp_json_key(json, name);
    const vlp_json_typed list = {sequence, VLP_JSON_ARRAY};
    if (!part || vlp_json_is_null(part)) return VLP_OK;
    VLP_TRY(vlp_json_expect(part, part_keys, VLP_COUNT(part_keys), name));
    VLP_TRY(vlp_json_expect(part, &list, 1, name));
    VLP_TRY(check_list(part, sequence, name, part_keys, VLP_COUNT(part_keys)));
    VLP_TRY(check_list(part, "single", name, item_keys, VLP_COUNT(item_keys)));
    return check_list(part, "pair", name, item_keys, VLP_COUNT(item_keys));
}

static bool is_merge(const vlp_json *value) {
    return vlp_json_is_string(value) ||
           (vlp_json_len(value) == 2 && vlp_json_is_string(vlp_json_at(value, 0)) &&
            vlp_json_is_string(vlp_json_at(value, 1)));
}

static bool is_scored_piece(const vlp_json *value) {
    return vlp_json_len(value) == 2 && vlp_json_is_string(vlp_json_at(value, 0)) &&
           vlp_json_is_number(vlp_json_at(value, 1));
}

static vlp_status check_members(const vlp_json *model, const char *key,
                                bool (*is)(const vlp_json *value), const char *words) {
    const vlp_json *list = vlp_json_key(model, key);
    for (size_t i = 0; i < vlp_json_len(list); i++)
        if (!is(vlp_json_at(list, i)))
            return VLP_FAIL(VLP_ERR_FORMAT, "model.%s[%zu]: must be %s", key, i, words);
    return VLP_OK;
}

vlp_status vlp_tokenizer_json_types(const vlp_json *json, const char *file) {
    const vlp_json *model = vlp_json_key(json, "model");
    VLP_TRY(vlp_json_expect(json, file_keys, VLP_COUNT(file_keys), file));
    vlp_status status = check_list(json, "added_tokens", "", token_keys, VLP_COUNT(token_keys));
    if (status == VLP_OK) status = check_part(json, "normalizer", "normalizers");
    if (status == VLP_OK) status = check_part(json, "pre_tokenizer", "pretokenizers");
    if (status == VLP_OK) status = check_part(json, "post_processor", "processors");
    if (status == VLP_OK)
        status = check_members(model, "merges", is_merge, "\"a b\" or [\"a\", \"b\"]");
    if (status == VLP_OK) status = check_members(model, "vocab", is_scored_piece, "[piece, score]");
    return status == VLP_OK ? VLP_OK : vlp_fail_in(status, "%s", file);
}
