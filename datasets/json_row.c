#include "datasets/json_row.h"

#include <string.h>

enum { FIELDS_MAX = 4096, DEPTH = 4 };

vlp_json *vlp_json_row_key(const vlp_json *object, const char *asked, const char *const *keys,
                           const char **found) {
    if (asked) {
        *found = asked;
        vlp_json *value = vlp_json_key(object, asked);
        return value ? value : vlp_json_get(object, asked);
    }
    for (; *keys; keys++) {
        vlp_json *value = vlp_json_key(object, *keys);
        if (!value || vlp_json_is_null(value)) continue;
        *found = *keys;
        return value;
    }
    return NULL;
}

/* A string, or something that holds strings: a list, or {"raw": ...} inside one. */
static bool says(const vlp_json *value, int depth) {
    const char *text = vlp_json_as_string(value);
    if (vlp_json_is_number(value) || !vlp_session_blank(text, strlen(text))) return true;
    for (size_t i = 0; depth > 0 && i < vlp_json_len(value); i++)
        if (says(vlp_json_at(value, i), depth - 1)) return true;
    const char *key;
    return depth > 0 && vlp_json_is_object(value) &&
           says(vlp_json_row_key(value, NULL, vlp_caption_keys, &key), depth - 1);
}

bool vlp_json_row_says(const vlp_json *value) {
    return says(value, DEPTH);
}

static vlp_status add_number(vlp_session *session, int64_t id, const vlp_json *value, int64_t row) {
    vlp_buf text = {0};
    vlp_status status = vlp_json_dump(value, 0, &text);
    if (status == VLP_OK)
        status = vlp_session_caption(session, id, text.data, text.len, "caption", row);
    vlp_buf_free(&text);
    return status;
}

static vlp_status add(vlp_session *session, int64_t id, const vlp_json *value, int64_t row,
                      int depth) {
    if (!says(value, depth)) return VLP_OK;
    if (vlp_json_is_number(value)) return add_number(session, id, value, row);
    if (vlp_json_is_string(value)) {
        const char *text = vlp_json_as_string(value);
        return vlp_session_caption(session, id, text, strlen(text), "caption", row);
    }
    for (size_t i = 0; i < vlp_json_len(value); i++)
        VLP_TRY(add(session, id, vlp_json_at(value, i), row, depth - 1));
    const char *key;
    if (!vlp_json_is_object(value)) return VLP_OK;
    return add(session, id, vlp_json_row_key(value, NULL, vlp_caption_keys, &key), row, depth - 1);
}

vlp_status vlp_json_row_captions(vlp_session *session, int64_t id, const vlp_json *value,
                                 int64_t row) {
    return add(session, id, value, row, DEPTH);
}

vlp_status vlp_json_row_fields(const vlp_json *object, const char *image_key,
                               const char *caption_key, vlp_buf *buffer, const char **out) {
    *out = NULL;
    vlp_json *fields = vlp_json_new_object();
    bool any = false;
    for (void *it = vlp_json_first(object); it; it = vlp_json_next(object, it)) {
        const char *key = vlp_json_iter_key(it);
        vlp_json *value = vlp_json_iter_value(it);
        bool scalar =
            vlp_json_is_number(value) || vlp_json_is_string(value) || vlp_json_is_bool(value);
        bool used = (image_key && strcmp(key, image_key) == 0) ||
                    (caption_key && strcmp(key, caption_key) == 0) || strcmp(key, "split") == 0;
        if (!scalar || used) continue;
        vlp_json_set(fields, key, vlp_json_copy(value));
        any = true;
    }
    vlp_buf_clear(buffer);
    vlp_status status = any ? vlp_json_dump(fields, 0, buffer) : VLP_OK;
    vlp_json_free(fields);
    if (any && buffer->len <= FIELDS_MAX) *out = buffer->data;
    return status;
}
