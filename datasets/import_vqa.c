/* Questions about pictures with their answers: VQAv2's pair of files, and lists as ALBEF and BLIP
 * write them ({question, answer, image}). */
#include "core/file.h"
#include "datasets/json_scan.h"
#include "datasets/numbered.h"
#include "datasets/session.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    vlp_session *session;
    vlp_numbered numbered;
    vlp_buf scratch, name, annotations;
    char set[64];
    int64_t row, questions, answered;
} vqa_run;

static vlp_status bad_row(vqa_run *run, const char *detail) {
    return vlp_session_skip(run->session, vlp_session_source(run->session), run->row,
                            VLP_SKIP_BAD_ROW, detail);
}

/* "train2014" -> train, "val2014" -> val, "test-dev2015" -> test. */
static const char *split_of(const char *set) {
    static const char *const splits[] = {"train", "val", "test"};
    for (size_t i = 0; i < VLP_COUNT(splits); i++)
        if (strncmp(set, splits[i], strlen(splits[i])) == 0) return splits[i];
    return NULL;
}

static vlp_status add_answers(vqa_run *run, int64_t question, const vlp_json *value) {
    vlp_json *nested = vlp_json_key(value, "answer");
    if (vlp_json_is_object(value) && nested) value = nested;
    if (vlp_json_is_string(value)) {
        const char *text = vlp_json_as_string(value);
        return vlp_session_answer(run->session, question, text, strlen(text));
    }
    for (size_t i = 0; i < vlp_json_len(value); i++)
        VLP_TRY(add_answers(run, question, vlp_json_at(value, i)));
    return VLP_OK;
}

static vlp_status image_of(vqa_run *run, const vlp_json *object, vlp_session_image *image,
                           int64_t *id) {
    const char *name = vlp_json_string(object, "image", NULL);
    int64_t number = vlp_json_int(object, "image_id", -1);
    bool found;
    if (name) return vlp_session_named_image(run->session, name, image, id);
    *id = 0;
    if (number < 0) return bad_row(run, "neither image nor image_id");
    VLP_TRY(vlp_numbered_name(&run->numbered, vlp_session_root(run->session), number, run->set,
                              &run->name, &found));
    return vlp_session_named_image(run->session, run->name.data, image, id);
}

static vlp_status add_question(vqa_run *run, const vlp_json *object) {
    const char *text = vlp_json_string(object, "question", "");
    int64_t number = vlp_json_int(object, "question_id", run->row), id, question;
    const vlp_json *answers = vlp_json_key(object, "answer");
    if (vlp_session_blank(text, strlen(text)))
        return vlp_session_skip(run->session, vlp_session_source(run->session), run->row,
                                VLP_SKIP_EMPTY_CAPTION, "an empty question");
    vlp_session_image image = {.row = run->row,
                               .split = vlp_json_string(object, "split", split_of(run->set))};
    VLP_TRY(image_of(run, object, &image, &id));
    if (!id) return VLP_OK;
    VLP_TRY(vlp_session_question(run->session, id, number, text, strlen(text),
                                 vlp_json_string(object, "question_type", NULL), &question));
    run->questions++;
    if (!answers) answers = vlp_json_key(object, "answers");
    run->answered += answers != NULL;
    return add_answers(run, question, answers);
}

static vlp_status parse(vqa_run *run, const char *text, size_t len, int64_t number,
                        vlp_json **object) {
    run->row = number;
    vlp_status status = vlp_json_parse_repaired(object, text, len, "element", &run->scratch);
    if (status == VLP_ERR_MEMORY) return status;
    return status == VLP_OK ? VLP_OK : bad_row(run, vlp_error());
}

static vlp_status each_question(const char *text, size_t len, int64_t number, void *user) {
    vqa_run *run = user;
    vlp_json *object;
    VLP_TRY(parse(run, text, len, number, &object));
    vlp_status status = !object                      ? VLP_OK
                        : vlp_json_is_object(object) ? add_question(run, object)
                                                     : bad_row(run, "not an object");
    vlp_json_free(object);
    return status;
}

static vlp_status each_annotation(const char *text, size_t len, int64_t number, void *user) {
    vqa_run *run = user;
    vlp_json *object;
    VLP_TRY(parse(run, text, len, number, &object));
    if (!object) return VLP_OK;
    int64_t question;
    vlp_status status =
        vlp_session_find_question(run->session, vlp_json_int(object, "question_id", -1), &question);
    const vlp_json *answers = vlp_json_key(object, "answers");
    if (!answers) answers = vlp_json_key(object, "multiple_choice_answer");
    if (status == VLP_OK && question) {
        run->answered++;
        status = add_answers(run, question, answers);
    } else if (status == VLP_OK) {
        status = bad_row(run, "its question_id is not among the questions");
    }
    vlp_json_free(object);
    return status;
}

/* "v2_OpenEnded_mscoco_train2014_questions.json" -> "v2_mscoco_train2014_annotations.json" */
static vlp_status annotations_beside(vqa_run *run) {
    const char *source = vlp_session_source(run->session);
    const char *asked = vlp_session_options(run->session)->annotations;
    if (asked) return vlp_buf_puts(&run->annotations, asked);
    const char *words[][2] = {{"OpenEnded_", ""}, {"questions", "annotations"}};
    const char *slash = strrchr(source, '/');
    VLP_TRY(vlp_buf_puts(&run->annotations, source));
    for (size_t i = 0; i < VLP_COUNT(words); i++) {
        const char *at = strstr(run->annotations.data + (slash - source), words[i][0]);
        if (!at) continue;
        vlp_buf next = {0};
        VLP_TRY(vlp_buf_append(&next, run->annotations.data, (size_t)(at - run->annotations.data)));
        VLP_TRY(vlp_buf_puts(&next, words[i][1]));
        VLP_TRY(vlp_buf_puts(&next, at + strlen(words[i][0])));
        vlp_buf_free(&run->annotations);
        run->annotations = next;
    }
    bool itself = strcmp(run->annotations.data, source) == 0;
    if (itself || !vlp_path_exists(run->annotations.data)) vlp_buf_clear(&run->annotations);
    return VLP_OK;
}

/* The set's name stands in the file: "data_subtype": "train2014". */
static void find_set(vqa_run *run, const char *text, size_t len) {
    const char *at = memmem(text, len, "\"data_subtype\"", 14);
    if (!at) return;
    char head[160];
    size_t left = (size_t)(text + len - at);
    snprintf(head, sizeof head, "%.*s", (int)(left < 159 ? left : 159), at);
    if (sscanf(head, "\"data_subtype\" : \"%63[^\"]\"", run->set) != 1) run->set[0] = '\0';
}

static vlp_status read_questions(vqa_run *run, const vlp_map *map) {
    const char *text = map->len ? (const char *)map->data : "";
    const char *where = vlp_session_source(run->session);
    find_set(run, text, map->len);
    vlp_status status = vlp_json_scan(text, map->len, "questions", where, each_question, run);
    if (status == VLP_ERR_FORMAT && run->row == 0)
        status = vlp_json_each(text, map->len, where, each_question, run);
    return status;
}

static vlp_status read_annotations(vqa_run *run) {
    VLP_TRY(annotations_beside(run));
    if (!run->annotations.len) return VLP_OK;
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, run->annotations.data));
    vlp_status status = vlp_json_scan(map.len ? (const char *)map.data : "", map.len, "annotations",
                                      run->annotations.data, each_annotation, run);
    vlp_map_close(&map);
    return status;
}

static vlp_status vqa_import(vlp_session *session) {
    vqa_run run = {.session = session};
    vlp_map map;
    VLP_TRY(vlp_session_forget_questions(session));
    VLP_TRY(vlp_map_open(&map, vlp_session_source(session)));
    vlp_status status = read_questions(&run, &map);
    vlp_map_close(&map);
    if (status == VLP_OK) status = read_annotations(&run);
    vlp_import_report *report = vlp_session_report(session);
    snprintf(report->recognised, sizeof report->recognised,
             "%s: vqa, %lld questions, %lld with answers%s%s", vlp_session_source(session),
             (long long)run.questions, (long long)run.answered, run.annotations.len ? " from " : "",
             run.annotations.len ? run.annotations.data : "");
    vlp_buf_free(&run.scratch);
    vlp_buf_free(&run.name);
    vlp_buf_free(&run.annotations);
    return status;
}

static int vqa_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path, (void)len;
    if (is_folder) return 0;
    bool coco = strstr(head, "\"questions\"") != NULL;
    bool list = strstr(head, "\"question\"") && strstr(head, "\"image");
    return coco ? 93 : list ? 91 : 0;
}

const vlp_importer vlp_importer_vqa = {"vqa", vqa_sniff, vqa_import};
