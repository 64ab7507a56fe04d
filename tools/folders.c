#include "tools/folders.h"
#include "tools/captions.h"

#include <string.h>

const folder_rule *folder_rule_find(const folder_rule *rules, size_t count, const char *name) {
    static const folder_rule none = {"", NULL, NULL, NULL, true};
    for (size_t i = 0; i < count; i++) {
        if (strncmp(name, rules[i].folder, strlen(rules[i].folder)) == 0) return &rules[i];
    }
    return &none;
}

vlp_status folder_rule_apply(const folder_rule *rule, vlp_buf *caption) {
    if (!rule->pattern || (rule->unless && caption_has_word(caption->data, rule->unless)))
        return VLP_OK;
    const char *place = strstr(rule->pattern, "%s");
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_buf_append(&text, rule->pattern,
                                place ? (size_t)(place - rule->pattern) : strlen(rule->pattern)));
    if (place) {
        VLP_TRY_DONE(vlp_buf_puts(&text, caption->data));
        VLP_TRY_DONE(vlp_buf_puts(&text, place + 2));
    }
    vlp_buf_clear(caption);
    status = vlp_buf_puts(caption, text.data);
done:
    vlp_buf_free(&text);
    return status;
}

vlp_status folder_rule_category(const folder_rule *rule, const char *caption, vlp_buf *out) {
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_puts(out, ""));
    if (!rule->category || caption_has_word(caption, rule->category)) return VLP_OK;
    return vlp_buf_printf(out, "%s, %s", caption, rule->category);
}

vlp_status folder_parts(const char *name, vlp_buf *folder, vlp_buf *stem) {
    const char *slash = strrchr(name, '/');
    const char *file = slash ? slash + 1 : name;
    const char *dot = strrchr(file, '.');
    vlp_buf_clear(folder);
    vlp_buf_clear(stem);
    VLP_TRY(vlp_buf_append(folder, name, slash ? (size_t)(slash - name) : 0));
    return vlp_buf_append(stem, file, dot ? (size_t)(dot - file) : strlen(file));
}

vlp_status folder_series(const char *name, const char *author, vlp_buf *out) {
    static const char *const variants[] = {" mirror",  " black and white", " black",
                                           " outline", " filled",          " shaded"};
    vlp_buf folder = {0}, stem = {0}, words = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(folder_parts(name, &folder, &stem));
    VLP_TRY_DONE(caption_from_stem(stem.data, author, &words));
    for (size_t i = 0; i < VLP_COUNT(variants); i++) {
        size_t len = strlen(variants[i]);
        if (words.len > len && strcmp(words.data + words.len - len, variants[i]) == 0)
            words.data[words.len -= len] = '\0';
    }
    vlp_buf_clear(out);
    status = vlp_buf_printf(out, "%s|%s|%s", folder.data, words.data, author ? author : "");
done:
    vlp_buf_free(&folder);
    vlp_buf_free(&stem);
    vlp_buf_free(&words);
    return status;
}
