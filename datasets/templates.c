#include "datasets/templates.h"

#include "core/file.h"

#include <stdio.h>
#include <string.h>

enum { TEMPLATES_MAX = 1 << 20 };

static vlp_status check(const vlp_templates *templates, const char *path) {
    int64_t row = 1;
    bool any = false;
    for (const char *line = templates->text.data; line && *line; row++) {
        size_t len = strcspn(line, "\n");
        const char *hole = strstr(line, "{}");
        if (!vlp_session_blank(line, len)) {
            any = true;
            if (!hole || hole >= line + len)
                return VLP_FAIL(VLP_ERR_FORMAT, "%s:%lld: a template needs {} for the class", path,
                                (long long)row);
        }
        line += len + (line[len] == '\n');
    }
    return any ? VLP_OK : VLP_FAIL(VLP_ERR_FORMAT, "%s: no templates in it", path);
}

vlp_status vlp_templates_open(vlp_templates *templates, const char *path) {
    *templates = (vlp_templates){0};
    if (!path) return vlp_buf_puts(&templates->text, "{}");
    VLP_TRY(vlp_file_read(path, TEMPLATES_MAX, &templates->text));
    return check(templates, path);
}

void vlp_templates_free(vlp_templates *templates) {
    vlp_buf_free(&templates->text);
    vlp_buf_free(&templates->caption);
}

static vlp_status fill(vlp_buf *out, const char *line, size_t len, const char *class_name) {
    vlp_buf_clear(out);
    size_t hole = (size_t)(strstr(line, "{}") - line);
    VLP_TRY(vlp_buf_append(out, line, hole));
    size_t start = out->len;
    VLP_TRY(vlp_buf_puts(out, class_name));
    for (size_t i = start; i < out->len; i++)
        if (out->data[i] == '_') out->data[i] = ' ';
    return vlp_buf_append(out, line + hole + 2, len - hole - 2);
}

vlp_status vlp_templates_apply(vlp_templates *templates, vlp_session *session, int64_t image_id,
                               const char *class_name, int64_t row) {
    for (const char *line = templates->text.data; line && *line;) {
        size_t len = strcspn(line, "\n");
        if (!vlp_session_blank(line, len)) {
            VLP_TRY(fill(&templates->caption, line, len, class_name));
            VLP_TRY(vlp_session_class_caption(session, image_id, templates->caption.data,
                                              templates->caption.len, class_name, row));
        }
        line += len + (line[len] == '\n');
    }
    return VLP_OK;
}

vlp_status vlp_class_name(const vlp_buf *classes, int number, char out[256]) {
    snprintf(out, 256, "%d", number);
    if (!classes->data) return VLP_OK;
    const char *line = classes->data;
    for (int i = 0; i < number && *line; i++) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    size_t len = strcspn(line, "\r\n");
    if (len == 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "the classes file has no line %d for label %d", number + 1,
                        number);
    snprintf(out, 256, "%.*s", (int)(len < 255 ? len : 255), line);
    return VLP_OK;
}
