/* Plain text: every line that is not blank is a text without an image. */
#include "core/file.h"
#include "datasets/session.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static int text_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    bool binary = memchr(head, '\0', len) != NULL;
    if (is_folder || len == 0 || binary) return 0;
    return strcasecmp(vlp_extension(path), ".txt") == 0 ? 30 : 10;
}

static vlp_status text_import(vlp_session *session) {
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, vlp_session_source(session)));
    const char *line = (const char *)map.data, *end = line ? line + map.len : NULL;
    vlp_status status = VLP_OK;
    int64_t row = 1;
    for (; line < end && status == VLP_OK; row++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop ? stop : end) - line);
        if (!vlp_session_blank(line, len))
            status = vlp_session_caption(session, 0, line, len, "text", row);
        line = stop ? stop + 1 : end;
        vlp_map_pass(&map, (size_t)(line - (const char *)map.data));
    }
    vlp_map_close(&map);
    vlp_import_report *report = vlp_session_report(session);
    snprintf(report->recognised, sizeof report->recognised, "%s: text, %lld lines",
             vlp_session_source(session), (long long)(row - 1));
    return status;
}

const vlp_importer vlp_importer_text = {"text", text_sniff, text_import};
