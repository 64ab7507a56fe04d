/* ruby-tanuki-emoji (Noto, Apache-2.0) and ruby-gemojione (EmojiOne 2, CC BY-SA 4.0): the same
 * emoji drawn by two vendors, paired by code points.
 *
 * A concept is an emoji without skin tone, gender and joiners; a family of near twins (clock faces,
 * hearts, moons, families ...) is one concept. Held-out concepts are trained on in no variant. */
#include "core/file.h"
#include "core/json.h"
#include "core/rng.h"
#include "tools/captions.h"
#include "tools/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char noto_folder[] = "ruby-tanuki-emoji/usr/share/rubygems-integration/all/gems/"
                                  "tanuki_emoji-0.6.0/app/assets/images/"
                                  "tanuki_emoji";
static const char names_file[] =
    "ruby-tanuki-emoji/usr/share/rubygems-integration/all/gems/tanuki_emoji-0.6.0/vendor/"
    "emojione-alpha-codes/eac.json";
static const char one_folder[] =
    "ruby-gemojione/usr/share/rubygems-integration/all/gems/gemojione-3.3.0/assets/png";
static const char index_file[] =
    "ruby-gemojione/usr/share/rubygems-integration/all/gems/gemojione-3.3.0/config/index.json";

enum { MAX_POINTS = 16, KEYWORDS = 3, HELD_OUT_PERCENT = 10, MAX_NAME = 45 };

typedef struct {
    uint32_t point[MAX_POINTS];
    int count;
} sequence;

/* Runs of code points that are variants of one drawing. */
static const struct {
    uint32_t first, last;
    const char *family;
} families[] = {
    {0x1F550, 0x1F567, "clock"},        {0x1F311, 0x1F31E, "moon"},
    {0x1F493, 0x1F49F, "heart"},        {0x1F5A4, 0x1F5A4, "heart"},
    {0x2764, 0x2764, "heart"},          {0x2763, 0x2763, "heart"},
    {0x2665, 0x2665, "heart"},          {0x1F4D2, 0x1F4DA, "book"},
    {0x1F638, 0x1F640, "cat face"},     {0x1F431, 0x1F431, "cat face"},
    {0x1F600, 0x1F637, "face"},         {0x1F641, 0x1F644, "face"},
    {0x1F910, 0x1F917, "face"},         {0x1F920, 0x1F927, "face"},
    {0x2639, 0x263A, "face"},           {0x1F446, 0x1F450, "hand"},
    {0x1F44A, 0x1F44F, "hand"},         {0x261D, 0x261D, "hand"},
    {0x270A, 0x270D, "hand"},           {0x1F590, 0x1F596, "hand"},
    {0x1F918, 0x1F91E, "hand"},         {0x1F466, 0x1F469, "person"},
    {0x1F474, 0x1F476, "person"},       {0x1F4E4, 0x1F4EA, "mailbox"},
    {0x1F4EB, 0x1F4EE, "mailbox"},      {0x1F510, 0x1F513, "lock"},
    {0x1F48F, 0x1F491, "couple"},       {0x1F46A, 0x1F46D, "family"},
    {0x1F385, 0x1F385, "santa"},        {0x1F936, 0x1F936, "santa"},
    {0x1F934, 0x1F934, "royal"},        {0x1F478, 0x1F478, "royal"},
    {0x1F30D, 0x1F310, "globe"},        {0x1F324, 0x1F32B, "weather"},
    {0x2600, 0x2604, "weather"},        {0x26C4, 0x26C8, "weather"},
    {0x1F415, 0x1F415, "dog"},          {0x1F436, 0x1F436, "dog"},
    {0x1F429, 0x1F429, "dog"},          {0x1F408, 0x1F408, "cat"},
    {0x1F40E, 0x1F40E, "horse"},        {0x1F434, 0x1F434, "horse"},
    {0x1F405, 0x1F405, "tiger"},        {0x1F42F, 0x1F42F, "tiger"},
    {0x1F402, 0x1F404, "cow"},          {0x1F42E, 0x1F42E, "cow"},
    {0x1F416, 0x1F417, "pig"},          {0x1F437, 0x1F437, "pig"},
    {0x1F43D, 0x1F43D, "pig"},          {0x1F400, 0x1F401, "mouse"},
    {0x1F42D, 0x1F42D, "mouse"},        {0x1F407, 0x1F407, "rabbit"},
    {0x1F430, 0x1F430, "rabbit"},       {0x1F412, 0x1F412, "monkey"},
    {0x1F435, 0x1F435, "monkey"},       {0x1F648, 0x1F64A, "monkey"},
    {0x1F409, 0x1F409, "dragon"},       {0x1F432, 0x1F432, "dragon"},
    {0x1F423, 0x1F425, "chick"},        {0x1F413, 0x1F414, "chicken"},
    {0x1F40B, 0x1F40B, "whale"},        {0x1F433, 0x1F433, "whale"},
    {0x1F42A, 0x1F42B, "camel"},        {0x1F3E0, 0x1F3E1, "house"},
    {0x1F4F1, 0x1F4F2, "mobile phone"}, {0x1F4C8, 0x1F4CA, "chart"},
    {0x1F4B9, 0x1F4B9, "chart"},        {0x2614, 0x2614, "umbrella"},
    {0x26F1, 0x26F1, "umbrella"},       {0x1F302, 0x1F302, "umbrella"},
    {0x2708, 0x2708, "airplane"},       {0x1F6EA, 0x1F6EC, "airplane"},
    {0x1F6E9, 0x1F6E9, "airplane"},     {0x260E, 0x260E, "telephone"},
    {0x1F4DE, 0x1F4DE, "telephone"},    {0x1F947, 0x1F949, "medal"},
    {0x1F3C5, 0x1F3C5, "medal"},        {0x1F396, 0x1F396, "medal"},
    {0x1F680, 0x1F680, "rocket"},       {0x1F687, 0x1F68A, "train"},
    {0x1F682, 0x1F686, "train"},        {0x1F694, 0x1F699, "car"},
    {0x1F693, 0x1F693, "car"},          {0x1F39E, 0x1F39F, "film"},
};

typedef struct {
    corpus_list *list;
    vlp_json *names, *index; /* both files by "1f469-200d-1f33e" */
    bool noto;
    vlp_buf path, caption, unicode_name, keywords, concept;
} emoji;

/* ---- code points --------------------------------------------------------------------------- */

/* "emoji_u1f468_200d_1f33e.png", "1F468-1F33E.png", or "NZ.png", a flag by its country. */
static void parse_name(const char *name, sequence *out) {
    *out = (sequence){0};
    const char *p = strncmp(name, "emoji_u", 7) == 0 ? name + 7 : name;
    size_t len = strcspn(p, ".");
    if (len == 2 && p != name + 7) {
        for (int i = 0; i < 2; i++) out->point[out->count++] = 0x1F1E6u + (uint32_t)(p[i] - 'A');
        return;
    }
    while (*p && *p != '.' && out->count < MAX_POINTS) {
        char *end;
        unsigned long value = strtoul(p, &end, 16);
        if (end == p) return;
        if (value != 0xFE0F && value != 0x200D) out->point[out->count++] = (uint32_t)value;
        p = *end == '_' || *end == '-' ? end + 1 : end;
    }
}

static bool is_tone(uint32_t p) {
    return p >= 0x1F3FB && p <= 0x1F3FF;
}

static bool is_gender(uint32_t p) {
    return p == 0x2640 || p == 0x2642;
}

static bool is_person(uint32_t p) {
    return p >= 0x1F466 && p <= 0x1F469;
}

static bool is_flag(const sequence *s) {
    return s->count == 2 && s->point[0] >= 0x1F1E6 && s->point[0] <= 0x1F1FF;
}

/* Whether the emoji is the plain form of its concept: no tone, and no gender sign added. */
static bool is_plain(const sequence *s) {
    for (int i = 0; i < s->count; i++) {
        if (is_tone(s->point[i]) || (i > 0 && is_gender(s->point[i]))) return false;
    }
    return true;
}

static const char *family_of(uint32_t point) {
    for (size_t i = 0; i < VLP_COUNT(families); i++) {
        if (point >= families[i].first && point <= families[i].last) return families[i].family;
    }
    return NULL;
}

/* Code points without skin tones, and without gender signs beside others. */
static sequence without_variants(const sequence *s) {
    sequence out = {0};
    for (int i = 0; i < s->count; i++) {
        bool drop = is_tone(s->point[i]) || (i > 0 && is_gender(s->point[i]));
        if (!drop) out.point[out.count++] = s->point[i];
    }
    return out;
}

/* The concept's key into out (cleared). */
static vlp_status concept_key(const sequence *s, vlp_buf *out) {
    sequence q = without_variants(s);
    int persons = 0;
    for (int i = 0; i < q.count; i++) persons += is_person(q.point[i]);
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_puts(out, ""));
    if (q.count > 1 && q.point[q.count - 1] == 0x20E3) return vlp_buf_puts(out, "keycap");
    if (persons > 1) return vlp_buf_puts(out, persons < q.count ? "couple" : "family");
    if (q.count == 1 && family_of(q.point[0])) return vlp_buf_puts(out, family_of(q.point[0]));
    if (persons) VLP_TRY(vlp_buf_puts(out, "worker"));
    for (int i = 0; i < q.count; i++) {
        if (!is_person(q.point[i])) VLP_TRY(vlp_buf_printf(out, "-%x", q.point[i]));
    }
    return VLP_OK;
}

/* ---- names --------------------------------------------------------------------------------- */

static vlp_json *find_key(const vlp_json *names, const sequence *s) {
    char key[MAX_POINTS * 8] = "";
    size_t n = 0;
    for (int i = 0; i < s->count; i++)
        n += (size_t)snprintf(key + n, sizeof key - n, "%s%x", i ? "-" : "", s->point[i]);
    return vlp_json_key(names, key);
}

/* Turns a file's object into one keyed by code points without joiners. */
static vlp_status rekey(vlp_json **out, const char *path, bool by_unicode) {
    vlp_json *file = NULL;
    VLP_TRY(vlp_json_load(&file, path));
    *out = vlp_json_new_object();
    for (void *it = vlp_json_first(file); it; it = vlp_json_next(file, it)) {
        vlp_json *value = vlp_json_iter_value(it);
        sequence s;
        char key[MAX_POINTS * 8] = "";
        size_t n = 0;
        parse_name(by_unicode ? vlp_json_string(value, "unicode", "") : vlp_json_iter_key(it), &s);
        for (int i = 0; i < s.count; i++)
            n += (size_t)snprintf(key + n, sizeof key - n, "%s%x", i ? "-" : "", s.point[i]);
        vlp_json_set(*out, key, vlp_json_copy(value));
    }
    vlp_json_free(file);
    return VLP_OK;
}

static vlp_status add_keywords(emoji *e, const vlp_json *entry) {
    const vlp_json *keywords = vlp_json_get(entry, "keywords");
    int used = 0;
    vlp_buf_clear(&e->keywords);
    VLP_TRY(vlp_buf_puts(&e->keywords, e->caption.data));
    for (size_t i = 0; i < vlp_json_len(keywords) && used < KEYWORDS; i++) {
        const char *word = vlp_json_as_string(vlp_json_at(keywords, i));
        if (strchr(word, '-') || strlen(word) < 3 || caption_has_word(e->keywords.data, word))
            continue;
        VLP_TRY(vlp_buf_printf(&e->keywords, ", %s", word));
        used++;
    }
    return VLP_OK;
}

static vlp_status make_captions(emoji *e, const sequence *s, corpus_picture *picture) {
    const vlp_json *index = find_key(e->index, s);
    const char *name =
        vlp_json_string(find_key(e->names, s), "name", vlp_json_string(index, "name", ""));
    if (strncmp(name, "flag: ", 6) == 0) {
        VLP_TRY(caption_from_sentence(name + 6, &e->unicode_name));
        vlp_buf_clear(&e->caption);
        VLP_TRY(vlp_buf_printf(&e->caption, "flag of %s", e->unicode_name.data));
        return corpus_caption(picture, e->caption.data);
    }
    VLP_TRY(caption_from_sentence(name, &e->caption));
    VLP_TRY(corpus_caption(picture, e->caption.data));
    if (!e->noto) return VLP_OK; /* evaluation uses one caption */
    const char *other = vlp_json_string(index, "name", "");
    if (strlen(other) <= MAX_NAME && is_plain(s)) {
        VLP_TRY(caption_from_sentence(other, &e->unicode_name));
        VLP_TRY(corpus_caption(picture, e->unicode_name.data));
    }
    VLP_TRY(add_keywords(e, index));
    return corpus_caption(picture, e->keywords.data);
}

/* ---- splits -------------------------------------------------------------------------------- */

/* Abstract signs and flags are trained on, but nobody could name an unseen one. */
static bool may_be_unseen(const sequence *s, const vlp_json *entry) {
    static const char *const categories[] = {"people",   "nature", "food",
                                             "activity", "travel", "objects"};
    const char *category = vlp_json_string(entry, "category", "");
    for (size_t i = 0; i < VLP_COUNT(categories) && !is_flag(s); i++) {
        if (strcmp(categories[i], category) == 0) return true;
    }
    return false;
}

/* The same draw for both vendors, since it depends on the concept alone. */
static bool is_held_out(const char *concept) {
    vlp_rng rng = vlp_rng_at(0, VLP_RNG_SPLIT, 0, vlp_rng_name(concept));
    bool family = strpbrk(concept, "0123456789") == NULL;
    return !family && vlp_rng_below(&rng, 100) < HELD_OUT_PERCENT;
}

static vlp_status add_emoji(const char *folder, const char *name, void *user) {
    emoji *e = user;
    corpus_picture *picture;
    sequence s;
    parse_name(name, &s);
    VLP_TRY(concept_key(&s, &e->concept));
    const vlp_json *entry = find_key(e->index, &s);
    bool unseen = may_be_unseen(&s, entry) && is_held_out(e->concept.data);
    const char *source = e->noto ? (unseen ? "noto-emoji-unseen" : "noto-emoji")
                                 : (unseen ? "emojione-unseen" : "emojione");
    VLP_TRY(vlp_path_join(&e->path, folder, name));
    VLP_TRY(corpus_add(e->list, e->path.data, source, NULL, &picture));
    VLP_TRY(make_captions(e, &s, picture));
    picture->fixed = true;
    picture->split = e->noto && !unseen ? "train" : "test";
    if (strcmp(picture->split, "test") == 0) {
        while (picture->captions > 1) vlp_free(picture->caption[--picture->captions]);
        if (!is_plain(&s)) picture->skip = "variant of a test emoji";
    }
    if (picture->captions == 0) picture->skip = "no caption";
    return VLP_OK;
}

vlp_status corpus_add_emoji(corpus_list *list, const char *root) {
    emoji e = {.list = list};
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_path_join(&path, root, names_file));
    VLP_TRY_DONE(rekey(&e.names, path.data, false));
    VLP_TRY_DONE(vlp_path_join(&path, root, index_file));
    VLP_TRY_DONE(rekey(&e.index, path.data, true));
    e.noto = true;
    VLP_TRY_DONE(vlp_path_join(&path, root, noto_folder));
    VLP_TRY_DONE(corpus_walk(path.data, ".png", add_emoji, &e));
    e.noto = false;
    VLP_TRY_DONE(vlp_path_join(&path, root, one_folder));
    VLP_TRY_DONE(corpus_walk(path.data, ".png", add_emoji, &e));
done:
    vlp_json_free(e.names);
    vlp_json_free(e.index);
    vlp_buf *buffers[] = {&e.path, &e.caption, &e.unicode_name, &e.keywords, &e.concept, &path};
    for (size_t i = 0; i < VLP_COUNT(buffers); i++) vlp_buf_free(buffers[i]);
    return status;
}
