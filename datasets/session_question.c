/* Questions and answers of an import run. */
#include "datasets/caption.h"
#include "datasets/session_state.h"

vlp_status vlp_session_forget_questions(vlp_session *s) {
    VLP_TRY(vlp_session_written(s));
    vlp_bind_int(s->query[Q_QUESTIONS_DROP], 1, s->source_id);
    return vlp_stmt_run(s->query[Q_QUESTIONS_DROP]);
}

static vlp_status first_int(vlp_stmt *stmt, int64_t *out) {
    bool row;
    VLP_TRY(vlp_stmt_step(stmt, &row));
    *out = row ? vlp_column_int(stmt, 0) : 0;
    return row ? vlp_stmt_run(stmt) : VLP_OK;
}

vlp_status vlp_session_question(vlp_session *s, int64_t image_id, int64_t number, const char *text,
                                size_t len, const char *kind, int64_t *id) {
    bool repaired;
    VLP_TRY(vlp_caption_clean(&s->caption, text, len, &repaired));
    VLP_TRY(vlp_session_written(s));
    vlp_stmt *add = s->query[Q_QUESTION_ADD];
    vlp_bind_int(add, 1, image_id);
    vlp_bind_int(add, 2, s->source_id);
    vlp_bind_int(add, 3, number);
    vlp_bind_text(add, 4, s->caption.data, (int64_t)s->caption.len);
    vlp_bind_text(add, 5, kind, -1);
    VLP_TRY(first_int(add, id));
    s->report->questions++;
    s->report->repaired += repaired;
    return vlp_session_tick(s);
}

vlp_status vlp_session_find_question(vlp_session *s, int64_t number, int64_t *id) {
    VLP_TRY(vlp_session_written(s));
    vlp_bind_int(s->query[Q_QUESTION_FIND], 1, s->source_id);
    vlp_bind_int(s->query[Q_QUESTION_FIND], 2, number);
    return first_int(s->query[Q_QUESTION_FIND], id);
}

vlp_status vlp_session_answer(vlp_session *s, int64_t question_id, const char *text, size_t len) {
    bool repaired;
    VLP_TRY(vlp_caption_clean(&s->caption, text, len, &repaired));
    if (vlp_session_blank(s->caption.data, s->caption.len)) return VLP_OK;
    VLP_TRY(vlp_session_written(s));
    vlp_stmt *add = s->query[Q_ANSWER_ADD];
    vlp_bind_int(add, 1, question_id);
    vlp_bind_text(add, 2, s->caption.data, (int64_t)s->caption.len);
    VLP_TRY(vlp_stmt_run(add));
    return vlp_session_tick(s);
}
