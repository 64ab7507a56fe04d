/* openclipart-png: Open Clip Art Library 0.18, public domain. Captions come from the Title that the
 * artist gave; from the file name where the Title names a collection. */
#include "core/file.h"
#include "tools/captions.h"
#include "tools/folders.h"
#include "tools/picture.h"
#include "tools/pngtext.h"

#include <stdlib.h>
#include <string.h>

static const char clipart_folder[] = "openclipart-png/usr/share/openclipart/png";
enum { MAX_FILE = 64 << 20, COLLECTION_NAMES = 4 };

static const folder_rule rules[] = {
    {"animals/amphibian", NULL, NULL, "animal", true},
    {"animals/birds", NULL, NULL, "bird", true},
    {"animals/bugs", NULL, NULL, "insect", true},
    {"animals/dinosaurs", NULL, NULL, "dinosaur", true},
    {"animals/fish", NULL, NULL, "sea animal", true},
    {"animals/mammals/bears", NULL, NULL, "bear", true},
    {"animals/mammals/big_cats", NULL, NULL, "big cat", true},
    {"animals/mammals/dogs", NULL, NULL, "dog", true},
    {"animals/mammals/horses", NULL, NULL, "horse", true},
    {"animals/mammals/housecats", NULL, NULL, "cat", true},
    {"animals", NULL, NULL, "animal", true},
    {"buildings/furniture", NULL, NULL, "furniture", true},
    {"buildings", NULL, NULL, "building", true},
    {"computer/buttons", "%s button", "button", NULL, false},
    {"computer/icons/", "%s icon", "icon", NULL, false},
    {"computer/hardware", NULL, NULL, "computer hardware", true},
    {"computer/connectors", NULL, NULL, "connector", true},
    {"computer", NULL, NULL, "computer", true},
    {"decorations", NULL, NULL, "decoration", true},
    {"education/books", NULL, NULL, "book", true},
    {"electronics/bulb", NULL, NULL, "bulb", true},
    {"electronics", NULL, NULL, "electronics", true},
    {"food/beverages", NULL, NULL, "drink", true},
    {"food/desserts", NULL, NULL, "dessert", true},
    {"food/fruit", NULL, NULL, "fruit", true},
    {"food/vegetables", NULL, NULL, "vegetable", true},
    {"food", NULL, NULL, "food", true},
    {"geography/astronomy", NULL, NULL, "astronomy", true},
    {"geography", NULL, NULL, "map", false},
    {"office/telephone", NULL, NULL, "telephone", true},
    {"office", NULL, NULL, "office", true},
    {"people/bodypart", NULL, NULL, "body part", true},
    {"people/clothing/hats", NULL, NULL, "hat", true},
    {"people/clothing/pantyhose", NULL, NULL, "clothing", false},
    {"people/clothing", NULL, NULL, "clothing", true},
    {"people/smilies", "%s face", "face", NULL, false},
    {"people/stickmen", "%s stick figure", "stick", NULL, false},
    {"people", NULL, NULL, "people", true},
    {"plants/flowers", NULL, NULL, "flower", true},
    {"plants/trees", NULL, NULL, "tree", true},
    {"plants", NULL, NULL, "plant", true},
    {"recreation/games/cards/cardbacks", "back of a playing card", NULL, NULL, false},
    {"recreation/games/cards/", NULL, NULL, NULL, false},
    {"recreation/games/chess", NULL, NULL, "chess", true},
    {"recreation/holiday/christmas", NULL, NULL, "christmas", true},
    {"recreation/holiday/easter", NULL, NULL, "easter", true},
    {"recreation/holiday/thanksgiving", NULL, NULL, "thanksgiving", true},
    {"recreation/holiday/valentines", NULL, NULL, "valentine", true},
    {"recreation/music", NULL, NULL, "music", true},
    {"recreation/party", NULL, NULL, "party", true},
    {"recreation/religion", NULL, NULL, "religion", true},
    {"recreation/sports", NULL, NULL, "sport", true},
    {"recreation/toys", NULL, NULL, "toy", true},
    {"science/astronomy", NULL, NULL, "astronomy", true},
    {"science/medicine", NULL, NULL, "medicine", true},
    {"science", NULL, NULL, "science", true},
    {"shapes/arrows", "%s arrow", "arrow", NULL, false},
    {"shapes/callouts", "%s speech bubble", "speech", NULL, false},
    {"shapes/flowchart", "flowchart symbol", NULL, NULL, false},
    {"shapes/jigsaw", "%s puzzle piece", "puzzle", NULL, false},
    {"shapes", NULL, NULL, "shape", false},
    {"signs_and_symbols/clocks", NULL, NULL, "clock", false},
    {"signs_and_symbols/flags/america/canada", "flag of %s", "flag", NULL, false},
    {"signs_and_symbols/flags/america/united_states", "flag of %s", "flag", NULL, false},
    {"signs_and_symbols/flags/europe/", "flag of %s", "flag", NULL, false},
    {"signs_and_symbols/flags/historic", "flag of %s", "flag", NULL, false},
    {"signs_and_symbols/flags/miscellany", "flag of %s", "flag", NULL, false},
    {"signs_and_symbols/flags/oceania/australia", "flag of %s", "flag", NULL, false},
    {"signs_and_symbols/flags/signalflag", NULL, NULL, NULL, false},
    {"signs_and_symbols/flags", "flag of %s", "flag", NULL, true},
    {"signs_and_symbols/led", "%s", NULL, NULL, false},
    {"signs_and_symbols/map_symbols/aiga", "%s sign", "sign", NULL, true},
    {"signs_and_symbols/map_symbols", "%s map symbol", "symbol", NULL, false},
    {"signs_and_symbols/money", NULL, NULL, "money", true},
    {"signs_and_symbols/weather", NULL, NULL, "weather", true},
    {"signs_and_symbols", NULL, NULL, "symbol", true},
    {"special/gradients", "%s", NULL, NULL, false},
    {"special/patterns", "%s pattern", "pattern", NULL, false},
    {"special", NULL, NULL, NULL, false},
    {"tools/weapons", NULL, NULL, "weapon", true},
    {"tools", NULL, NULL, "tool", true},
    {"transportation/aiga-symbols", "%s sign", "sign", NULL, true},
    {"transportation/boating", NULL, NULL, "boating", true},
    {"transportation/roadsigns", "%s road sign", "sign", NULL, true},
    {"transportation/vehicles", NULL, NULL, "vehicle", true},
    {"transportation", NULL, NULL, "transportation", true},
};

/* How many different file names carry a title: many means that it names a collection. */
typedef struct {
    char *title, *stem;
} title_use;

typedef struct {
    corpus_list *list;
    title_use *use;
    int uses, capacity;
    png_text text;
    vlp_buf path, file, folder, stem, caption, other, series;
} clipart;

static vlp_status read_text(clipart *c, const char *folder, const char *name) {
    VLP_TRY(vlp_path_join(&c->path, folder, name));
    vlp_buf_clear(&c->file);
    VLP_TRY(vlp_file_read(c->path.data, MAX_FILE, &c->file));
    VLP_TRY(png_text_read(&c->text, (const uint8_t *)c->file.data, c->file.len));
    return folder_parts(name, &c->folder, &c->stem);
}

static bool is_generated_star(const char *name) {
    return strncmp(name, "shapes/stars/star_", 18) == 0;
}

static vlp_status count_title(const char *folder, const char *name, void *user) {
    clipart *c = user;
    if (is_generated_star(name)) return VLP_OK;
    VLP_TRY(read_text(c, folder, name));
    VLP_TRY(caption_from_stem(c->stem.data, c->text.author.data, &c->caption));
    if (c->uses == c->capacity) {
        int capacity = c->capacity ? 2 * c->capacity : 1024;
        void *grown = vlp_realloc(c->use, (size_t)capacity * sizeof *c->use);
        if (!grown) return VLP_ERR_MEMORY;
        c->use = grown;
        c->capacity = capacity;
    }
    title_use *use = &c->use[c->uses];
    use->title = vlp_strdup(c->text.title.data);
    use->stem = vlp_strdup(c->caption.data);
    c->uses++;
    return use->title && use->stem ? VLP_OK : VLP_ERR_MEMORY;
}

static int by_title(const void *a, const void *b) {
    const title_use *x = a, *y = b;
    int order = strcmp(x->title, y->title);
    return order ? order : strcmp(x->stem, y->stem);
}

/* Uses are sorted: looks for COLLECTION_NAMES different names under one title. */
static bool is_shared_title(const clipart *c, const char *title) {
    int low = 0, high = c->uses, names = 0;
    while (low < high) {
        int middle = (low + high) / 2;
        if (strcmp(c->use[middle].title, title) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (int i = low; i < c->uses && strcmp(c->use[i].title, title) == 0; i++)
        names += i == low || strcmp(c->use[i].stem, c->use[i - 1].stem) != 0;
    return names >= COLLECTION_NAMES;
}

/* "recreation/games/cards/simple/simple_s_9": the nine of spades. */
static vlp_status playing_card(const clipart *c, vlp_buf *out) {
    static const char *const suits[] = {"clubs", "diamonds", "hearts", "spades"};
    static const struct {
        const char *code, *name;
    } ranks[] = {{"a", "ace"},  {"2", "two"},   {"3", "three"}, {"4", "four"}, {"5", "five"},
                 {"6", "six"},  {"7", "seven"}, {"8", "eight"}, {"9", "nine"}, {"10", "ten"},
                 {"j", "jack"}, {"q", "queen"}, {"k", "king"}};
    vlp_buf_clear(out);
    const char *style = strrchr(c->folder.data, '/'), *code = strchr(c->stem.data, '_');
    if (!style || !code || code[1] == '\0' || code[2] != '_') return VLP_OK;
    for (size_t s = 0; s < VLP_COUNT(suits); s++) {
        for (size_t r = 0; suits[s][0] == code[1] && r < VLP_COUNT(ranks); r++) {
            if (strcmp(ranks[r].code, code + 3) != 0) continue;
            return vlp_buf_printf(out, "%s of %s playing card", ranks[r].name, suits[s]);
        }
    }
    return VLP_OK;
}

static vlp_status main_caption(clipart *c, const char *name) {
    const char *title = c->text.title.data, *author = c->text.author.data;
    if (strncmp(name, "recreation/games/cards/", 23) == 0) {
        VLP_TRY(playing_card(c, &c->caption));
        if (c->caption.len) return VLP_OK;
    }
    bool collection = caption_is_collection(title) || is_shared_title(c, title);
    if (!collection) VLP_TRY(caption_from_title(title, author, &c->caption));
    if (collection || c->caption.len < 2)
        VLP_TRY(caption_from_stem(c->stem.data, author, &c->caption));
    const char *english = caption_translate(c->caption.data);
    if (english) {
        vlp_buf_clear(&c->caption);
        VLP_TRY(vlp_buf_puts(&c->caption, english));
    }
    return VLP_OK;
}

static vlp_status add_picture(const char *folder, const char *name, void *user) {
    clipart *c = user;
    corpus_picture *picture;
    VLP_TRY(read_text(c, folder, name));
    VLP_TRY(folder_series(name, c->text.author.data, &c->series));
    VLP_TRY(corpus_add(c->list, c->path.data, "openclipart", c->series.data, &picture));
    if (is_generated_star(name)) {
        picture->skip = "generated star";
        return VLP_OK;
    }
    const folder_rule *rule = folder_rule_find(rules, VLP_COUNT(rules), name);
    VLP_TRY(main_caption(c, name));
    bool named = c->caption.len > 0 || (rule->pattern && !strstr(rule->pattern, "%s"));
    if (named) VLP_TRY(folder_rule_apply(rule, &c->caption));
    VLP_TRY(corpus_caption(picture, c->caption.data));
    if (caption_is_description(c->text.description.data)) {
        VLP_TRY(caption_from_sentence(c->text.description.data, &c->other));
        VLP_TRY(corpus_caption(picture, c->other.data));
    }
    VLP_TRY(folder_rule_category(rule, c->caption.data, &c->other));
    VLP_TRY(corpus_caption(picture, c->other.data));
    picture->eligible = rule->held_out;
    if (picture->captions == 0) picture->skip = "no caption";
    return VLP_OK;
}

vlp_status corpus_add_clipart(corpus_list *list, const char *root) {
    clipart c = {.list = list};
    vlp_buf folder = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_path_join(&folder, root, clipart_folder));
    VLP_TRY_DONE(corpus_walk(folder.data, ".png", count_title, &c));
    qsort(c.use, (size_t)c.uses, sizeof *c.use, by_title);
    VLP_TRY_DONE(corpus_walk(folder.data, ".png", add_picture, &c));
done:
    for (int i = 0; i < c.uses; i++) {
        vlp_free(c.use[i].title);
        vlp_free(c.use[i].stem);
    }
    vlp_free(c.use);
    png_text_free(&c.text);
    vlp_buf *buffers[] = {&c.path,    &c.file,  &c.folder, &c.stem,
                          &c.caption, &c.other, &c.series, &folder};
    for (size_t i = 0; i < VLP_COUNT(buffers); i++) vlp_buf_free(buffers[i]);
    return status;
}
