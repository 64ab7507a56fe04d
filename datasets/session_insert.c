/* The rows that an import run adds: at once, or many together where the index was empty. */
#include "datasets/session_state.h"

#include <stdio.h>
#include <string.h>

static const vlp_stream_table tables[VLP_SESSION_TABLES] = {
    [VLP_TABLE_IMAGES] = {"INSERT INTO images(id, source_id, path, offset, length, stored, size,"
                          " mtime, hash, width, height, split, asked, group_id, label, fields,"
                          " state, item, captions_mtime) VALUES",
                          19},
    [VLP_TABLE_CAPTIONS] = {"INSERT INTO captions(image_id, source_id, text, kind, hash, split,"
                            " original) VALUES",
                            7},
    [VLP_TABLE_SKIPPED] = {"INSERT INTO skipped(source_id, path, row, reason, detail) VALUES", 5},
};

static vlp_status prepare_insert(vlp_session *s, vlp_session_table table) {
    char text[320];
    size_t n = strlen(tables[table].head);
    snprintf(text, sizeof text, "%s(", tables[table].head);
    for (int c = 0; c < tables[table].columns; c++, n += 2) strcpy(text + n + 1, "?,");
    strcpy(text + n, ")");
    return vlp_stmt_new(&s->insert[table], s->db, text);
}

vlp_status vlp_session_inserts_open(vlp_session *s) {
    for (int t = 0; t < VLP_SESSION_TABLES; t++) VLP_TRY(prepare_insert(s, (vlp_session_table)t));
    return s->bulk ? vlp_stream_new(&s->stream, s->db, tables, VLP_SESSION_TABLES) : VLP_OK;
}

void vlp_session_inserts_close(vlp_session *s) {
    vlp_stream_free(s->stream);
    s->stream = NULL;
    for (int t = 0; t < VLP_SESSION_TABLES; t++) vlp_stmt_free(s->insert[t]);
}

vlp_status vlp_session_insert(vlp_session *s, vlp_session_table table, const vlp_value *values) {
    if (s->stream) return vlp_stream_row(s->stream, (int)table, values);
    vlp_bind_values(s->insert[table], 1, values, tables[table].columns);
    return vlp_stmt_run(s->insert[table]);
}

vlp_status vlp_session_written(vlp_session *s) {
    return s->stream ? vlp_stream_wait(s->stream) : VLP_OK;
}

vlp_status vlp_session_skip(vlp_session *s, const char *path, int64_t row, vlp_skip_reason reason,
                            const char *detail) {
    s->report->skipped++;
    s->report->by_reason[reason]++;
    s->final_reason = reason;
    const vlp_value values[] = {vlp_value_int(s->source_id), vlp_value_text(path),
                                vlp_value_int(row), vlp_value_text(vlp_skip_name(reason)),
                                vlp_value_text(detail)};
    VLP_TRY(vlp_session_insert(s, VLP_TABLE_SKIPPED, values));
    if (s->options->skipped) s->options->skipped(path, row, reason, detail, s->options->user);
    return vlp_session_tick(s);
}
