/* tuxpaint-stamps-default: pictures with a sentence beside each (GPL-2), and
 * pysiogame: drawings named by one word (public domain as packaged by Debian). */
#include "core/file.h"
#include "tools/captions.h"
#include "tools/folders.h"
#include "tools/picture.h"

#include <string.h>

static const char stamps_folder[] = "tuxpaint-stamps-default/usr/share/tuxpaint/stamps";
static const char drawings_folder[] = "pysiogame/usr/share/games/pysiogame/res/images/art4apps";
enum { MAX_TEXT_FILE = 1 << 20 };

static const folder_rule stamp_rules[] = {
    {"animals/birds", NULL, NULL, "bird", true},
    {"animals/dinosaur", NULL, NULL, "dinosaur", true},
    {"animals/fish", NULL, NULL, "sea animal", true},
    {"animals/insects", NULL, NULL, "insect", true},
    {"animals", NULL, NULL, "animal", true},
    {"clothes", NULL, NULL, "clothing", true},
    {"food/fruit", NULL, NULL, "fruit", true},
    {"food/vegetables", NULL, NULL, "vegetable", true},
    {"food", NULL, NULL, "food", true},
    {"hobbies", NULL, NULL, "hobby", true},
    {"household/tools", NULL, NULL, "tool", true},
    {"household", NULL, NULL, "household", true},
    {"medical", NULL, NULL, "medicine", true},
    {"military", NULL, NULL, "military", true},
    {"naturalforces", NULL, NULL, "nature", true},
    {"people/body_parts", NULL, NULL, "body part", true},
    {"people", NULL, NULL, "people", true},
    {"plants/flowers", NULL, NULL, "flower", true},
    {"plants/trees", NULL, NULL, "tree", true},
    {"plants", NULL, NULL, "plant", true},
    {"seasonal/christmas", NULL, NULL, "christmas", true},
    {"seasonal/easter", NULL, NULL, "easter", true},
    {"seasonal/halloween", NULL, NULL, "halloween", true},
    {"seasonal/hanukkah", NULL, NULL, "hanukkah", false},
    {"space", NULL, NULL, "space", true},
    {"sports", NULL, NULL, "sport", true},
    {"symbols/alphabets", NULL, NULL, NULL, false},
    {"symbols/chess", "%s chess piece", "chess", NULL, false},
    {"symbols/faces", "%s face", "face", NULL, true},
    {"symbols/math/operators", "%s sign", "sign", NULL, true},
    {"symbols/math", "number %s", "number", NULL, true},
    {"symbols/money", NULL, NULL, "money", false},
    {"symbols/music", NULL, NULL, "music", true},
    {"symbols", NULL, NULL, "symbol", true},
    {"town/flags", NULL, NULL, NULL, true},
    {"town/houses", NULL, NULL, "building", true},
    {"town/roadsigns", "%s road sign", "sign", NULL, true},
    {"town", NULL, NULL, "town", true},
    {"vehicles/ship", NULL, NULL, "ship", true},
    {"vehicles", NULL, NULL, "vehicle", true},
};

static const folder_rule drawing_rules[] = {
    {"actions", NULL, NULL, "action", false},
    {"animals", NULL, NULL, "animal", true},
    {"body", NULL, NULL, "body part", true},
    {"clothes_n_accessories", NULL, NULL, "clothing", true},
    {"construction", NULL, NULL, "building", true},
    {"food", NULL, NULL, "food", true},
    {"fruit_n_veg", NULL, NULL, "vegetable", true},
    {"jobs", NULL, NULL, "job", true},
    {"nature", NULL, NULL, "landscape", true},
    {"people", NULL, NULL, "people", false},
    {"sport", NULL, NULL, "sport", false},
    {"transport", NULL, NULL, "vehicle", true},
};

typedef struct {
    corpus_list *list;
    vlp_buf path, text, folder, stem, sentence, caption, other, series;
} stamps;

static void stamps_free(stamps *s) {
    vlp_buf *buffers[] = {&s->path,     &s->text,    &s->folder, &s->stem,
                          &s->sentence, &s->caption, &s->other,  &s->series};
    for (size_t i = 0; i < VLP_COUNT(buffers); i++) vlp_buf_free(buffers[i]);
}

/* Reads the sentence beside a stamp; a mirrored stamp shares its original's. */
static vlp_status read_sentence(stamps *s, const char *file) {
    static const char mirror[] = "_mirror";
    size_t len = strlen(file) - strlen(".png"), n = strlen(mirror);
    if (len > n && strncmp(file + len - n, mirror, n) == 0) len -= n;
    vlp_buf_clear(&s->path);
    VLP_TRY(vlp_buf_append(&s->path, file, len));
    VLP_TRY(vlp_buf_puts(&s->path, ".txt"));
    vlp_buf_clear(&s->text);
    VLP_TRY(vlp_buf_puts(&s->text, ""));
    if (!vlp_path_exists(s->path.data)) return VLP_OK;
    VLP_TRY(vlp_file_read(s->path.data, MAX_TEXT_FILE, &s->text));
    s->text.data[strcspn(s->text.data, "\r\n")] = '\0';
    return VLP_OK;
}

/* A sentence that starts with a dash is a joke about the picture. */
static bool is_remark(const char *sentence) {
    return sentence[0] == '\0' || strncmp(sentence, "\xE2\x80\x93", 3) == 0 || sentence[0] == '-';
}

static vlp_status add_stamp(const char *folder, const char *name, void *user) {
    stamps *s = user;
    corpus_picture *picture;
    VLP_TRY(vlp_path_join(&s->path, folder, name));
    VLP_TRY(folder_series(name, NULL, &s->series));
    VLP_TRY(corpus_add(s->list, s->path.data, "tuxpaint-stamps", s->series.data, &picture));
    VLP_TRY(folder_parts(name, &s->folder, &s->stem));
    VLP_TRY(read_sentence(s, picture->file));
    vlp_buf_clear(&s->sentence);
    VLP_TRY(vlp_buf_puts(&s->sentence, ""));
    const folder_rule *rule = folder_rule_find(stamp_rules, VLP_COUNT(stamp_rules), name);
    if (!is_remark(s->text.data)) VLP_TRY(caption_from_sentence(s->text.data, &s->sentence));
    VLP_TRY(caption_subject(s->sentence.data, &s->caption));
    if (s->caption.len == 0) VLP_TRY(caption_from_stem(s->stem.data, NULL, &s->caption));
    VLP_TRY(folder_rule_apply(rule, &s->caption));
    VLP_TRY(corpus_caption(picture, s->caption.data));
    VLP_TRY(corpus_caption(picture, s->sentence.data));
    VLP_TRY(folder_rule_category(rule, s->caption.data, &s->other));
    VLP_TRY(corpus_caption(picture, s->other.data));
    picture->eligible = rule->held_out;
    if (picture->captions == 0) picture->skip = "no caption";
    return VLP_OK;
}

vlp_status corpus_add_stamps(corpus_list *list, const char *root) {
    stamps s = {.list = list};
    vlp_buf folder = {0};
    vlp_status status = vlp_path_join(&folder, root, stamps_folder);
    if (status == VLP_OK) status = corpus_walk(folder.data, ".png", add_stamp, &s);
    vlp_buf_free(&folder);
    stamps_free(&s);
    return status;
}

static vlp_status add_drawing(const char *folder, const char *name, void *user) {
    stamps *s = user;
    corpus_picture *picture;
    VLP_TRY(vlp_path_join(&s->path, folder, name));
    VLP_TRY(folder_series(name, NULL, &s->series));
    VLP_TRY(corpus_add(s->list, s->path.data, "pysiogame", s->series.data, &picture));
    VLP_TRY(folder_parts(name, &s->folder, &s->stem));
    const folder_rule *rule = folder_rule_find(drawing_rules, VLP_COUNT(drawing_rules), name);
    VLP_TRY(caption_from_stem(s->stem.data, NULL, &s->caption));
    VLP_TRY(corpus_caption(picture, s->caption.data));
    VLP_TRY(folder_rule_category(rule, s->caption.data, &s->other));
    VLP_TRY(corpus_caption(picture, s->other.data));
    picture->eligible = rule->held_out;
    return VLP_OK;
}

vlp_status corpus_add_drawings(corpus_list *list, const char *root) {
    stamps s = {.list = list};
    vlp_buf folder = {0};
    vlp_status status = vlp_path_join(&folder, root, drawings_folder);
    if (status == VLP_OK) status = corpus_walk(folder.data, ".jpg", add_drawing, &s);
    vlp_buf_free(&folder);
    stamps_free(&s);
    return status;
}
