#include "tools/captions.h"

#include <ctype.h>
#include <string.h>

enum { MAX_TEXT = 1000, MAX_WORDS = 64, SENTENCE_WORDS = 20 };

typedef struct {
    char text[2 * MAX_TEXT];
    size_t used;
    char *word[MAX_WORDS];
    int count;
} words;

typedef enum { SPLIT_TITLE, SPLIT_STEM, SPLIT_SENTENCE } split_kind;

static const struct {
    const char *entity, *text;
} entities[] = {{"&amp;", "&"}, {"&#39;", "'"}, {"&quot;", "\""}, {"&lt;", "<"}, {"&gt;", ">"}};

/* Titles of whole collections; the picture's own name is in the file name. */
static const char *const collections[] = {
    "clipart by",
    "part of the",
    "lemon svg theme",
    "etiquette icons",
    "aiga_symbol_signs",
    "various clip",
    "svg road signs",
    "gold-theme",
    "r16 ",
    "r15 ",
    "australian maps",
    "blueberry -",
    "map symbols",
    "homes clipart",
    "simple arrows",
    "plastik-icon",
    "sallite",
    "architetto fran",
    "c rollandin",
    "chess pieces",
    "pc connectors",
    "svg gradient",
    "advertising",
    "diner menu",
    "menu clip art",
    "road signs",
    "untitled",
    "unnamed",
    "new document",
    "svg speech",
    "bibliografia",
    "ontologia del",
    "illustrator ",
    "inkscape",
};

/* Words that never describe a picture. */
static const char *const junk[] = {
    "svg", "md",    "clipart", "cliparts", "rpswb",       "ganson", "aj",
    "bwh", "zazou", "bb",      "anon",     "openclipart", "v0",     "r",
    "v",   "al",    "bitmap",  "aiga",     "1m",          "lodahl",
};

/* Ends of captions that name the collection again. */
static const struct {
    const char *from, *to;
} endings[] = {
    {" body part", ""},           {" clothing", ""},
    {" rpg map elements", ""},    {" iconset", " icon"},
    {" icons", " icon"},          {" clip art", ""},
    {" clip art collection", ""}, {" symbol black and white", " symbol"},
};

/* ---- words -------------------------------------------------------------------------------- */

static bool is_letter(unsigned char c) {
    return isalpha(c) || c >= 0x80;
}

static void words_add(words *w, const char *text, size_t len) {
    if (len == 0 || w->count == MAX_WORDS || w->used + len + 1 > sizeof w->text) return;
    char *word = w->text + w->used;
    memcpy(word, text, len);
    word[len] = '\0';
    w->used += len + 1;
    w->word[w->count++] = word;
}

static void words_remove(words *w, int at) {
    memmove(w->word + at, w->word + at + 1, (size_t)(w->count - at - 1) * sizeof w->word[0]);
    w->count--;
}

static bool in_list(const char *const *list, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], text) == 0) return true;
    }
    return false;
}

/* Lower case for ASCII and for the Latin-1 letters in UTF-8 (C3 80 .. C3 9E). */
static void lower(char *text) {
    for (unsigned char *p = (unsigned char *)text; *p; p++) {
        if (*p < 0x80)
            *p = (unsigned char)tolower(*p);
        else if (*p == 0xC3 && p[1] >= 0x80 && p[1] <= 0x9E && p[1] != 0x97)
            *++p += 0x20;
    }
}

static bool contains(const char *text, const char *needle) {
    return strcasestr(text, needle) != NULL;
}

/* ---- characters --------------------------------------------------------------------------- */

/* Length of the valid UTF-8 sequence at p, 0 when it is none. */
static size_t utf8_len(const unsigned char *p) {
    size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xC2 && p[0] < 0xE0 ? 2 : (p[0] & 0xF0) == 0xE0 ? 3 : 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
    }
    return n;
}

/* Copies text with entities decoded, Latin-1 bytes made UTF-8, and typographic quotes, dashes and
 * control characters made ASCII. Cut at MAX_TEXT bytes between characters. */
static void normalise(const char *text, char out[MAX_TEXT + 8]) {
    static const struct {
        const char *from, *to;
    } marks[] = {{"\xE2\x80\x98", "'"},  {"\xE2\x80\x99", "'"},  {"\xE2\x80\x9C", "\""},
                 {"\xE2\x80\x9D", "\""}, {"\xE2\x80\x93", ", "}, {"\xE2\x80\x94", ", "},
                 {"\xE2\x80\xA6", "..."}};
    size_t n = 0;
    for (const char *p = text; *p && n < MAX_TEXT;) {
        size_t step = 0;
        for (size_t i = 0; i < VLP_COUNT(entities) && !step; i++) {
            size_t len = strlen(entities[i].entity);
            if (strncmp(p, entities[i].entity, len) != 0) continue;
            out[n++] = entities[i].text[0];
            step = len;
        }
        for (size_t i = 0; i < VLP_COUNT(marks) && !step; i++) {
            if (strncmp(p, marks[i].from, 3) != 0) continue;
            for (const char *c = marks[i].to; *c; c++) out[n++] = *c;
            step = 3;
        }
        if (step) {
            p += step;
            continue;
        }
        unsigned char c = (unsigned char)*p;
        size_t len = utf8_len((const unsigned char *)p);
        if (len == 0) { /* a Latin-1 byte */
            out[n++] = (char)(0xC0 | (c >> 6));
            out[n++] = (char)(0x80 | (c & 0x3F));
            p++;
        } else if (len == 1) {
            out[n++] = c < 0x20 || c == 0x7F ? ' ' : (char)c;
            p++;
        } else {
            memcpy(out + n, p, len);
            n += len;
            p += len;
        }
    }
    out[n] = '\0';
}

/* Blanks bracketed remarks that are no description: addresses and more than four words. */
static void blank_remarks(char *text, bool all) {
    for (char *open = strpbrk(text, "([<"); open; open = strpbrk(open + 1, "([<")) {
        char *close = strpbrk(open, ")]>");
        size_t len = close ? (size_t)(close - open) + 1 : strlen(open);
        int spaces = 0;
        bool address = false;
        for (size_t i = 0; i < len; i++) {
            spaces += open[i] == ' ';
            address |= open[i] == '@' || open[i] == '/' || open[i] == ':';
        }
        if (all || address || spaces >= 4) memset(open, ' ', len);
    }
}

/* Whether the character at i begins a new word although it stands beside letters. */
static bool breaks(const char *text, size_t start, size_t i, split_kind kind) {
    unsigned char before = (unsigned char)text[i - 1], c = (unsigned char)text[i];
    if (isdigit(c) && is_letter(before)) { /* "baloon2" and "up1", but not "mp3" */
        bool word = strncmp(text + start, "in", 2) == 0 || strncmp(text + start, "up", 2) == 0;
        return i - start >= 3 || (i - start == 2 && word);
    }
    return kind == SPLIT_STEM && isupper(c) && islower(before); /* camelCase */
}

/* Whether a hyphen or apostrophe at i belongs to the word: "t-shirt", "king's". */
static bool joins(const char *text, size_t start, size_t i, split_kind kind) {
    unsigned char after = (unsigned char)text[i + 1];
    if (i == start || !isalnum(after)) return false;
    if (text[i] == '\'') return true;
    if (text[i] != '-') return false;
    bool single = i - start == 1 && !isdigit((unsigned char)text[start]);
    return single || kind == SPLIT_SENTENCE;
}

static void words_split(words *w, const char *text, split_kind kind) {
    *w = (words){0};
    size_t start = 0, i = 0;
    for (; text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        bool inside = is_letter(c) || isdigit(c) || joins(text, start, i, kind);
        if (inside && i > start && breaks(text, start, i, kind)) {
            words_add(w, text + start, i - start);
            start = i;
        }
        if (inside) continue;
        words_add(w, text + start, i - start);
        start = i + 1;
        if (kind == SPLIT_TITLE && c == '&') words_add(w, "and", 3);
    }
    words_add(w, text + start, i - start);
    for (int k = 0; k < w->count; k++) lower(w->word[k]);
}

/* ---- rules on words ------------------------------------------------------------------------ */

/* "01", "03b", "12": a number and at most one letter. */
static bool is_numbering(const char *text) {
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && (text[digits] == '\0' || (digits > 1 && text[digits + 1] == '\0'));
}

/* Numbers that only count variants: at the end, or with a leading zero. */
static void drop_numbering(words *w) {
    while (w->count > 1 && is_numbering(w->word[w->count - 1])) w->count--;
    int last = w->count - 1;
    bool pattern = last > 1 && strcmp(w->word[last], "pattern") == 0;
    if (pattern && is_numbering(w->word[last - 1])) words_remove(w, last - 1);
    for (int i = w->count - 1; i >= 0 && w->count > 1; i--) {
        if (is_numbering(w->word[i]) && w->word[i][0] == '0') words_remove(w, i);
    }
}

/* "b w", "b and w" and their like become the first of the three words they stand for. */
static void mend_black_and_white(words *w) {
    for (int i = 0; i + 1 < w->count; i++) {
        int next = i + 1;
        if (strcmp(w->word[i], "b") != 0) continue;
        if (strcmp(w->word[next], "and") == 0 && next + 1 < w->count) next++;
        if (strcmp(w->word[next], "w") != 0) continue;
        w->word[i] = (char *)(uintptr_t) "bw";
        for (; next > i; next--) words_remove(w, next);
    }
}

static void drop_junk(words *w) {
    for (int i = w->count - 1; i >= 0; i--) {
        if (in_list(junk, VLP_COUNT(junk), w->word[i])) words_remove(w, i);
    }
}

/* Whether `word` is (the beginning of) one of the author's names. */
static bool is_author_word(const words *author, const char *word, bool prefix) {
    size_t len = strlen(word);
    for (int i = 0; i < author->count; i++) {
        if (strcmp(author->word[i], word) == 0) return true;
        if (prefix && strncmp(author->word[i], word, len) == 0) return true;
        if (prefix && len >= 5 && strncmp(author->word[i], word, strlen(author->word[i])) == 0 &&
            strlen(author->word[i]) >= 4)
            return true; /* "peterm" by "Peter M." */
    }
    return false;
}

static void drop_author(words *w, const char *author, bool prefix) {
    if (!author) return;
    char text[MAX_TEXT + 8];
    words names;
    normalise(author, text);
    words_split(&names, text, SPLIT_TITLE);
    while (w->count > 1 && is_author_word(&names, w->word[w->count - 1], prefix)) w->count--;
}

static void mend_words(words *w) {
    for (int i = 0; i < w->count; i++) {
        const char *mended = caption_mend(w->word[i]);
        if (mended) w->word[i] = (char *)(uintptr_t)mended;
    }
}

/* The first of repeated words stays: "gatto gatto" and "hat ... hat". Short words may repeat. */
static void drop_repeats(words *w) {
    for (int i = w->count - 1; i > 0; i--) {
        for (int k = 0; k < i; k++) {
            bool longer = strlen(w->word[i]) > 3 || k == i - 1;
            if (!longer || strcmp(w->word[i], w->word[k]) != 0) continue;
            words_remove(w, i);
            break;
        }
    }
}

static vlp_status words_join(const words *w, vlp_buf *out) {
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_puts(out, ""));
    for (int i = 0; i < w->count; i++) {
        if (w->word[i][0] == '\0') continue;
        if (out->len) VLP_TRY(vlp_buf_puts(out, " "));
        VLP_TRY(vlp_buf_puts(out, w->word[i]));
    }
    return VLP_OK;
}

static vlp_status mend_endings(vlp_buf *out) {
    for (size_t i = 0; i < VLP_COUNT(endings); i++) {
        size_t len = strlen(endings[i].from);
        if (out->len <= len || strcmp(out->data + out->len - len, endings[i].from) != 0) continue;
        out->len -= len;
        out->data[out->len] = '\0';
        VLP_TRY(vlp_buf_puts(out, endings[i].to));
    }
    return VLP_OK;
}

/* ---- entry points -------------------------------------------------------------------------- */

static vlp_status from_name(const char *name, const char *author, split_kind kind, vlp_buf *out) {
    char text[MAX_TEXT + 8];
    words w;
    normalise(name, text);
    blank_remarks(text, false);
    words_split(&w, text, kind);
    drop_numbering(&w);
    if (kind == SPLIT_STEM) drop_junk(&w);
    drop_author(&w, author, kind == SPLIT_STEM);
    drop_numbering(&w);
    if (kind == SPLIT_TITLE && w.count > 1) drop_junk(&w);
    mend_black_and_white(&w);
    mend_words(&w);
    drop_repeats(&w);
    if (w.count == 1 && is_numbering(w.word[0])) w.count = 0;
    VLP_TRY(words_join(&w, out));
    return mend_endings(out);
}

vlp_status caption_from_title(const char *title, const char *author, vlp_buf *out) {
    return from_name(title, author, SPLIT_TITLE, out);
}

vlp_status caption_from_stem(const char *stem, const char *author, vlp_buf *out) {
    return from_name(stem, author, SPLIT_STEM, out);
}

/* End of the first sentence that has a word in it. */
static size_t sentence_len(const char *text) {
    bool word = false;
    for (size_t i = 0; text[i]; i++) {
        word |= is_letter((unsigned char)text[i]) != 0;
        bool end = strchr(".!?", text[i]) != NULL;
        if (word && end && (text[i + 1] == '\0' || text[i + 1] == ' ' || text[i + 1] == '"'))
            return i;
    }
    return strlen(text);
}

vlp_status caption_from_sentence(const char *text, vlp_buf *out) {
    static const char *const articles[] = {"a", "an", "the", "this", "these", "some"};
    char copy[MAX_TEXT + 8];
    words w;
    normalise(text, copy);
    blank_remarks(copy, true);
    copy[sentence_len(copy)] = '\0';
    words_split(&w, copy, SPLIT_SENTENCE);
    if (w.count > 1 && in_list(articles, VLP_COUNT(articles), w.word[0])) words_remove(&w, 0);
    if (w.count > SENTENCE_WORDS) w.count = SENTENCE_WORDS;
    return words_join(&w, out);
}

vlp_status caption_subject(const char *sentence, vlp_buf *out) {
    static const char *const verbs[] = {"is",    "are",     "was",      "means",     "stands",
                                        "carry", "carries", "lets",     "resembles", "can",
                                        "has",   "last",    "contains", "this",      "you"};
    words w;
    words_split(&w, sentence, SPLIT_SENTENCE);
    for (int i = 0; i < w.count; i++) {
        if (in_list(verbs, VLP_COUNT(verbs), w.word[i])) w.count = i;
    }
    return words_join(&w, out);
}

bool caption_is_collection(const char *title) {
    title += strspn(title, " ");
    for (size_t i = 0; i < VLP_COUNT(collections); i++) {
        if (strncasecmp(title, collections[i], strlen(collections[i])) == 0) return true;
    }
    return title[0] == '\0';
}

bool caption_is_description(const char *text) {
    static const char *const markup[] = {
        "http",
        "www.",
        "@",
        "HASH(",
        "converted",
        "collection",
        "license",
        "public",
        "inkscape",
        "created",
        "made ",
        "drawn",
        "svg",
        "vector",
        "http",
        "flags as signals",
        "Semaphore flag",
        "roadsigns",
        "Simbolo",
        "enjoy",
        "clipart",
        "clip art",
        "my ",
        "I ",
        "this",
        "theme",
        "Shape package",
    };
    for (size_t i = 0; i < VLP_COUNT(markup); i++) {
        if (contains(text, markup[i])) return false;
    }
    char copy[MAX_TEXT + 8];
    words w;
    normalise(text, copy);
    words_split(&w, copy, SPLIT_SENTENCE);
    return w.count >= 2 && w.count <= SENTENCE_WORDS;
}

/* Whether a word may end here, with or without a plural s. */
static bool ends_word(const char *p) {
    if (*p == 's') p++;
    return *p == '\0' || *p == ' ' || *p == ',';
}

bool caption_has_word(const char *caption, const char *word) {
    for (const char *p = strstr(caption, word); p; p = strstr(p + 1, word)) {
        if ((p == caption || p[-1] == ' ') && ends_word(p + strlen(word))) return true;
    }
    return false;
}
