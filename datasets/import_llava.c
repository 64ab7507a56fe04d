/* Conversations about pictures, as LLaVA has them. A single exchange that asks nothing ("Describe
 * the image.") gives a caption; every other exchange is a question with its answer. */
#include "core/file.h"
#include "datasets/json_scan.h"
#include "datasets/session.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct {
    vlp_session *session;
    vlp_buf scratch, prompt;
    int64_t row, number, captions, questions;
} llava_run;

static vlp_status skip(llava_run *run, vlp_skip_reason reason, const char *detail) {
    return vlp_session_skip(run->session, vlp_session_source(run->session), run->row, reason,
                            detail);
}

/* What was said, without the mark where the picture goes in. */
static vlp_status said(const vlp_json *turn, vlp_buf *out) {
    const char *text = vlp_json_string(turn, "value", "");
    if (!text[0]) text = vlp_json_string(turn, "content", "");
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_reserve(out, 1));
    for (const char *mark; (mark = strstr(text, "<image>")); text = mark + strlen("<image>"))
        VLP_TRY(vlp_buf_append(out, text, (size_t)(mark - text)));
    return vlp_buf_puts(out, text);
}

static bool by_person(const vlp_json *turn) {
    const char *who = vlp_json_string(turn, "from", vlp_json_string(turn, "role", ""));
    return strcasecmp(who, "human") == 0 || strcasecmp(who, "user") == 0;
}

static vlp_status add_exchange(llava_run *run, int64_t id, const vlp_json *human,
                               const vlp_json *answer, bool only) {
    VLP_TRY(said(human, &run->prompt));
    const char *prompt = run->prompt.data, *text = vlp_json_string(answer, "value", "");
    if (!text[0]) text = vlp_json_string(answer, "content", "");
    if (vlp_session_blank(text, strlen(text)))
        return skip(run, VLP_SKIP_EMPTY_CAPTION, "an empty answer");
    if (only && !strchr(prompt, '?')) {
        run->captions++;
        return vlp_session_caption(run->session, id, text, strlen(text), "caption", run->row);
    }
    if (vlp_session_blank(prompt, strlen(prompt)))
        return skip(run, VLP_SKIP_EMPTY_CAPTION, "an empty question");
    int64_t question;
    VLP_TRY(vlp_session_question(run->session, id, ++run->number, prompt, strlen(prompt),
                                 "conversation", &question));
    run->questions++;
    return vlp_session_answer(run->session, question, text, strlen(text));
}

static vlp_status add_conversation(llava_run *run, const vlp_json *object) {
    const vlp_json *turns = vlp_json_key(object, "conversations");
    const vlp_json *image = vlp_json_key(object, "image");
    if (vlp_json_is_array(image)) image = vlp_json_at(image, 0);
    const char *name = vlp_json_as_string(image);
    if (!vlp_json_is_array(turns)) return skip(run, VLP_SKIP_BAD_ROW, "no conversations");
    if (!name[0]) return skip(run, VLP_SKIP_BAD_ROW, "a conversation without an image");
    int64_t id;
    vlp_session_image row = {.row = run->row, .split = vlp_json_string(object, "split", NULL)};
    VLP_TRY(vlp_session_named_image(run->session, name, &row, &id));
    size_t n = vlp_json_len(turns);
    for (size_t i = 0; id && i + 1 < n; i++) {
        const vlp_json *human = vlp_json_at(turns, i), *answer = vlp_json_at(turns, i + 1);
        if (!by_person(human) || by_person(answer)) continue;
        VLP_TRY(add_exchange(run, id, human, answer, n == 2));
    }
    return VLP_OK;
}

static vlp_status each_row(const char *text, size_t len, int64_t number, void *user) {
    llava_run *run = user;
    run->row = number;
    vlp_json *object;
    vlp_status status = vlp_json_parse_repaired(&object, text, len, "element", &run->scratch);
    if (status == VLP_ERR_MEMORY) return status;
    if (status != VLP_OK) return skip(run, VLP_SKIP_BAD_ROW, vlp_error());
    status = add_conversation(run, object);
    vlp_json_free(object);
    return status;
}

static vlp_status llava_import(vlp_session *session) {
    llava_run run = {.session = session};
    vlp_map map;
    VLP_TRY(vlp_session_forget_questions(session));
    VLP_TRY(vlp_map_open(&map, vlp_session_source(session)));
    vlp_status status = vlp_json_each(map.len ? (const char *)map.data : "", map.len,
                                      vlp_session_source(session), each_row, &run);
    vlp_map_close(&map);
    vlp_import_report *report = vlp_session_report(session);
    snprintf(report->recognised, sizeof report->recognised,
             "%s: llava, %lld captions, %lld questions with answers", vlp_session_source(session),
             (long long)run.captions, (long long)run.questions);
    vlp_buf_free(&run.scratch);
    vlp_buf_free(&run.prompt);
    return status;
}

static int llava_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path, (void)len;
    return !is_folder && strstr(head, "\"conversations\"") ? 95 : 0;
}

const vlp_importer vlp_importer_llava = {"llava", llava_sniff, llava_import};
