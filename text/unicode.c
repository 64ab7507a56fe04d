#include "text/unicode.h"

#include "core/status.h"

#include <utf8proc.h>

typedef struct {
    uint32_t first, last;
} range;

static bool in_ranges(const range *ranges, size_t count, uint32_t code) {
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

int vlp_utf8_next(const char *text, size_t len, uint32_t *out) {
    const uint8_t *s = (const uint8_t *)text;
    if (len == 0) return 0;
    if (s[0] < 0x80) {
        *out = s[0];
        return 1;
    }
    int size = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || len < (size_t)size) return 0;
    uint32_t code = s[0] & (0x7Fu >> size);
    for (int i = 1; i < size; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return 0;
    *out = code;
    return size;
}

int vlp_utf8_put(uint32_t code, char out[4]) {
    return (int)utf8proc_encode_char((utf8proc_int32_t)code, (utf8proc_uint8_t *)out);
}

bool vlp_utf8_valid(const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        uint32_t code;
        int size = vlp_utf8_next(text + at, len - at, &code);
        if (size == 0) return false;
        at += (size_t)size;
    }
    return true;
}

static utf8proc_category_t category(uint32_t code) {
    return utf8proc_category((utf8proc_int32_t)code);
}

/* Additions of Unicode 15.0 and 15.1, in order. */
static bool is_newer(uint32_t code) {
    static const range ranges[] = {
        {0xCF3, 0xCF3},     {0xECE, 0xECE},     {0x2FFC, 0x2FFF},   {0x31EF, 0x31EF},
        {0x10EFD, 0x10EFF}, {0x1123F, 0x11241}, {0x11B00, 0x11B09}, {0x11F00, 0x11F10},
        {0x11F12, 0x11F3A}, {0x11F3E, 0x11F59}, {0x1342F, 0x1342F}, {0x13439, 0x13455},
        {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1D2C0, 0x1D2D3}, {0x1DF25, 0x1DF2A},
        {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E4D0, 0x1E4F9}, {0x1F6DC, 0x1F6DC},
        {0x1F774, 0x1F776}, {0x1F77B, 0x1F77F}, {0x1F7D9, 0x1F7D9}, {0x1FA75, 0x1FA77},
        {0x1FA87, 0x1FA88}, {0x1FAAD, 0x1FAAF}, {0x1FABB, 0x1FABD}, {0x1FABF, 0x1FABF},
        {0x1FACE, 0x1FACF}, {0x1FADA, 0x1FADB}, {0x1FAE8, 0x1FAE8}, {0x1FAF7, 0x1FAF8},
        {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF}};
    if (code < ranges[0].first) return false;
    size_t low = 0, high = VLP_COUNT(ranges);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < VLP_COUNT(ranges) && code >= ranges[low].first;
}

vlp_unicode_kind vlp_unicode_kind_of(uint32_t code) {
    static const vlp_unicode_kind kinds[] = {
        [UTF8PROC_CATEGORY_CN] = VLP_UNICODE_CONTROL, [UTF8PROC_CATEGORY_CC] = VLP_UNICODE_CONTROL,
        [UTF8PROC_CATEGORY_CF] = VLP_UNICODE_CONTROL, [UTF8PROC_CATEGORY_CS] = VLP_UNICODE_CONTROL,
        [UTF8PROC_CATEGORY_CO] = VLP_UNICODE_CONTROL, [UTF8PROC_CATEGORY_ZS] = VLP_UNICODE_SPACE,
        [UTF8PROC_CATEGORY_ZL] = VLP_UNICODE_SPACE,   [UTF8PROC_CATEGORY_ZP] = VLP_UNICODE_SPACE,
        [UTF8PROC_CATEGORY_PC] = VLP_UNICODE_PUNCT,   [UTF8PROC_CATEGORY_PD] = VLP_UNICODE_PUNCT,
        [UTF8PROC_CATEGORY_PS] = VLP_UNICODE_PUNCT,   [UTF8PROC_CATEGORY_PE] = VLP_UNICODE_PUNCT,
        [UTF8PROC_CATEGORY_PI] = VLP_UNICODE_PUNCT,   [UTF8PROC_CATEGORY_PF] = VLP_UNICODE_PUNCT,
        [UTF8PROC_CATEGORY_PO] = VLP_UNICODE_PUNCT,   [UTF8PROC_CATEGORY_MN] = VLP_UNICODE_MARK,
    };
    if (is_newer(code)) return VLP_UNICODE_CONTROL;
    size_t index = (size_t)category(code);
    return index < VLP_COUNT(kinds) ? kinds[index] : VLP_UNICODE_OTHER;
}

bool vlp_unicode_is_white_space(uint32_t code) {
    static const range ranges[] = {
        {0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
    return in_ranges(ranges, VLP_COUNT(ranges), code);
}

bool vlp_unicode_is_space(uint32_t code) {
    return vlp_unicode_is_white_space(code) || (code >= 0x1C && code <= 0x1F);
}

bool vlp_unicode_is_letter(uint32_t code) {
    switch (category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return true;
    default:
        return false;
    }
}

bool vlp_unicode_is_number(uint32_t code) {
    utf8proc_category_t is = category(code);
    return is == UTF8PROC_CATEGORY_ND || is == UTF8PROC_CATEGORY_NL || is == UTF8PROC_CATEGORY_NO;
}

bool vlp_unicode_is_ideograph(uint32_t code) {
    static const range ranges[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                   {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
    return code >= 0x3400 && in_ranges(ranges, VLP_COUNT(ranges), code);
}

int vlp_unicode_lower(uint32_t code, uint32_t out[2]) {
    /* The one unconditional entry of SpecialCasing.txt that lower-cases to two code points. */
    if (code == 0x130) {
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
    return 1;
}

bool vlp_unicode_is_cased(uint32_t code) {
    /* Other_Uppercase and Other_Lowercase outside the letters and modifiers. */
    static const range others[] = {{0xAA, 0xAA},      {0xBA, 0xBA},       {0x2160, 0x217F},
                                   {0x24B6, 0x24E9},  {0x1F130, 0x1F149}, {0x1F150, 0x1F169},
                                   {0x1F170, 0x1F189}};
    utf8proc_category_t is = category(code);
    return is == UTF8PROC_CATEGORY_LU || is == UTF8PROC_CATEGORY_LL || is == UTF8PROC_CATEGORY_LT ||
           in_ranges(others, VLP_COUNT(others), code);
}

bool vlp_unicode_is_case_ignorable(uint32_t code) {
    /* Word_Break = MidLetter, MidNumLet or Single_Quote. */
    static const range middle[] = {
        {0x27, 0x27},     {0x2E, 0x2E},     {0x3A, 0x3A},     {0xB7, 0xB7},
        {0x387, 0x387},   {0x55F, 0x55F},   {0x5F4, 0x5F4},   {0x2018, 0x2019},
        {0x2024, 0x2024}, {0x2027, 0x2027}, {0xFE13, 0xFE13}, {0xFE52, 0xFE52},
        {0xFE55, 0xFE55}, {0xFF07, 0xFF07}, {0xFF0E, 0xFF0E}, {0xFF1A, 0xFF1A}};
    utf8proc_category_t is = category(code);
    return is == UTF8PROC_CATEGORY_MN || is == UTF8PROC_CATEGORY_ME || is == UTF8PROC_CATEGORY_CF ||
           is == UTF8PROC_CATEGORY_LM || is == UTF8PROC_CATEGORY_SK ||
           in_ranges(middle, VLP_COUNT(middle), code);
}

int vlp_unicode_decompose(uint32_t code, uint32_t out[4]) {
    utf8proc_int32_t parts[4];
    int boundary = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char((utf8proc_int32_t)code, parts, 4, UTF8PROC_DECOMPOSE, &boundary);
    VLP_ASSERT(count > 0 && count <= 4, "U+%04X decomposes into %d", code, (int)count);
    for (int i = 0; i < (int)count; i++) out[i] = (uint32_t)parts[i];
    return (int)count;
}

int vlp_unicode_decompose_compatibly(uint32_t code, uint32_t *out, int max) {
    utf8proc_int32_t parts[32];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        (utf8proc_int32_t)code, parts, 32, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &boundary);
    int n = count > 0 && count <= 32 && count <= max ? (int)count : 0;
    for (int i = 0; i < n; i++) out[i] = (uint32_t)parts[i];
    return n;
}

uint8_t vlp_unicode_combining_class(uint32_t code) {
    return (uint8_t)utf8proc_get_property((utf8proc_int32_t)code)->combining_class;
}

/* One composition unit: a character and those that may join it. Returns the bytes written, 0 when
 * they do not fit. */
static size_t compose_run(const uint32_t *codes, size_t count, char *out, size_t max) {
    enum { ROOM = 4 * 256 };
    utf8proc_int32_t parts[ROOM];
    size_t n = 0, written = 0;
    if (count == 1 && codes[0] < 0x80 && max > 0) {
        out[0] = (char)codes[0];
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        int boundary = 0;
        n += (size_t)utf8proc_decompose_char((utf8proc_int32_t)codes[i], parts + n,
                                             (utf8proc_ssize_t)(ROOM - n), UTF8PROC_DECOMPOSE,
                                             &boundary);
    }
    for (size_t i = 1; i < n; i++) { /* canonical order: stable, by class */
        uint8_t own = vlp_unicode_combining_class((uint32_t)parts[i]);
        size_t at = i;
        utf8proc_int32_t moved = parts[i];
        for (; own && at > 0 && vlp_unicode_combining_class((uint32_t)parts[at - 1]) > own; at--)
            parts[at] = parts[at - 1];
        parts[at] = moved;
    }
    n = (size_t)utf8proc_normalize_utf32(parts, (utf8proc_ssize_t)n,
                                         UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (size_t i = 0; i < n; i++) {
        if (written + 4 > max) return 0;
        written += (size_t)vlp_utf8_put((uint32_t)parts[i], out + written);
    }
    return written;
}

size_t vlp_unicode_compose(const char *text, size_t len, char *out, size_t max) {
    enum { ROOM = 256 };
    uint32_t codes[ROOM];
    size_t count = 0, n = 0;
    for (size_t at = 0; at <= len;) {
        uint32_t code = 0;
        size_t size = at < len ? (size_t)vlp_utf8_next(text + at, len - at, &code) : 1;
        bool starts = at == len || code < 0x300; /* nothing below joins what is before it */
        if (count && (starts || count == ROOM)) {
            size_t written = compose_run(codes, count, out + n, max - n);
            if (!written) break;
            n += written;
            count = 0;
        }
        if (at < len) codes[count++] = code;
        at += size;
    }
    return n;
}

const char *vlp_unicode_version(void) {
    return utf8proc_version();
}
