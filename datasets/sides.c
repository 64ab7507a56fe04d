#include "datasets/sides.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const sides[] = {"left", "right"};
static const char *const endings[] = {"", "most", "ward", "wards", "side"};

static bool in_word(char c) {
    return isalnum((unsigned char)c) || (c & 0x80);
}

/* At the start of a word: which side it names, -1 = none. */
static int side_at(const char *text, size_t len, size_t at) {
    if (at > 0 && in_word(text[at - 1])) return -1;
    size_t n = 0;
    while (at + n < len && in_word(text[at + n])) n++;
    for (int s = 0; s < 2; s++) {
        size_t stem = strlen(sides[s]);
        if (n < stem || strncasecmp(text + at, sides[s], stem) != 0) continue;
        for (size_t e = 0; e < VLP_COUNT(endings); e++)
            if (strlen(endings[e]) == n - stem &&
                strncasecmp(text + at + stem, endings[e], n - stem) == 0)
                return s;
    }
    return -1;
}

bool vlp_has_sides(const char *text, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (((text[i] | 32) == 'l' || (text[i] | 32) == 'r') && side_at(text, len, i) >= 0)
            return true;
    return false;
}

/* "LEFT" -> "RIGHT", "Left" -> "Right" */
static vlp_status put_side(vlp_buf *out, const char *like, const char *side) {
    bool first = isupper((unsigned char)like[0]), all = isupper((unsigned char)like[1]);
    for (size_t i = 0; side[i]; i++) {
        char c =
            (i == 0 && first) || (i > 0 && all) ? (char)toupper((unsigned char)side[i]) : side[i];
        VLP_TRY(vlp_buf_append(out, &c, 1));
    }
    return VLP_OK;
}

vlp_status vlp_mirror_sides(vlp_buf *out, const char *text, size_t len) {
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_reserve(out, len + 64));
    for (size_t i = 0; i < len;) {
        int side = side_at(text, len, i);
        if (side < 0) {
            VLP_TRY(vlp_buf_append(out, text + i, 1));
            i++;
            continue;
        }
        VLP_TRY(put_side(out, text + i, sides[1 - side]));
        i += strlen(sides[side]);
    }
    return VLP_OK;
}
