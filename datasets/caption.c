#include "datasets/caption.h"

#include "core/hash.h"
#include "text/unicode.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

size_t vlp_utf8_sequence(const char *text, size_t left) {
    const unsigned char *s = (const unsigned char *)text;
    if (left == 0) return 0;
    if (s[0] < 0x80) return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4) return 0;
    size_t n = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
    if (n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0;
    return n;
}

static size_t utf8_write(uint32_t c, char out[4]) {
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(lead[n] | c);
    return n;
}

static const struct {
    const char *name;
    uint32_t code;
} entities[] = {{"amp;", '&'},  {"lt;", '<'},    {"gt;", '>'},
                {"quot;", '"'}, {"apos;", '\''}, {"nbsp;", ' '}};

/* "#39;" or "#x27;": returns how many bytes it takes, 0 when it is not one. */
static size_t numeric_entity(const char *s, size_t left, uint32_t *code) {
    if (left < 3 || s[0] != '#') return 0;
    uint32_t base = s[1] == 'x' || s[1] == 'X' ? 16 : 10;
    size_t i = base == 16 ? 2 : 1, first = i;
    uint32_t c = 0;
    for (; i < left && i < first + 7 && isxdigit((unsigned char)s[i]); i++) {
        uint32_t digit = s[i] <= '9' ? (uint32_t)(s[i] - '0') : (uint32_t)((s[i] | 32) - 'a' + 10);
        if (digit >= base) return 0;
        c = c * base + digit;
    }
    if (i == first || i >= left || s[i] != ';') return 0;
    if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
    *code = c;
    return i + 1;
}

/* `s` follows an '&'. */
static size_t entity(const char *s, size_t left, uint32_t *code) {
    for (size_t i = 0; i < VLP_COUNT(entities); i++) {
        size_t n = strlen(entities[i].name);
        if (n <= left && memcmp(s, entities[i].name, n) == 0) {
            *code = entities[i].code;
            return n;
        }
    }
    return numeric_entity(s, left, code);
}

static vlp_status put(vlp_buf *out, const char *bytes, size_t n) {
    bool space = n == 1 && (unsigned char)bytes[0] <= ' ';
    if (!space) return vlp_buf_append(out, bytes, n);
    if (out->len == 0 || out->data[out->len - 1] == ' ') return VLP_OK;
    return vlp_buf_append(out, " ", 1);
}

/* NFC. Nothing below U+0300 is changed by it, which is what nearly all captions consist of. */
static vlp_status compose(vlp_buf *text) {
    size_t i = 0;
    while (i < text->len && (unsigned char)text->data[i] < 0xCC) i++;
    if (i == text->len) return VLP_OK;
    vlp_buf out = {0};
    size_t room = 3 * text->len + 1; /* three times is NFC's bound in UTF-8 */
    VLP_TRY(vlp_buf_reserve(&out, room));
    out.len = vlp_unicode_compose(text->data, text->len, out.data, room - 1);
    out.data[out.len] = '\0';
    vlp_buf_free(text);
    *text = out;
    return VLP_OK;
}

/* How many bytes pass as they are: visible ASCII, and spaces between them. */
static size_t plain_run(const char *text, size_t len) {
    size_t i = 0;
    for (; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool visible = c > ' ' && c < 0x7F && c != '&';
        if (!visible && (c != ' ' || i == 0 || text[i - 1] == ' ')) break;
    }
    return i;
}

vlp_status vlp_caption_clean(vlp_buf *out, const char *text, size_t len, bool *repaired) {
    vlp_buf_clear(out);
    *repaired = false;
    VLP_TRY(vlp_buf_reserve(out, (len < VLP_CAPTION_MAX ? len : VLP_CAPTION_MAX) + 8));
    for (size_t i = 0; i < len;) {
        if (out->len >= VLP_CAPTION_MAX) {
            *repaired = true;
            break;
        }
        size_t room = VLP_CAPTION_MAX - out->len, plain = plain_run(text + i, len - i);
        if (plain) {
            plain = plain < room ? plain : room;
            VLP_TRY(vlp_buf_append(out, text + i, plain));
            i += plain;
            continue;
        }
        uint32_t code;
        char utf8[4];
        size_t used = text[i] == '&' ? entity(text + i + 1, len - i - 1, &code) : 0;
        size_t n = used ? 0 : vlp_utf8_sequence(text + i, len - i);
        if (used) {
            VLP_TRY(put(out, utf8, utf8_write(code, utf8)));
            i += used + 1;
        } else if (n == 0) {
            *repaired = true;
            VLP_TRY(vlp_buf_append(out, "\xEF\xBF\xBD", 3));
            i++;
        } else {
            if (text[i] == '\0')
                *repaired = true;
            else
                VLP_TRY(put(out, text[i] == 0x7F ? " " : text + i, n));
            i += n;
        }
    }
    while (out->len && out->data[out->len - 1] == ' ') out->len--;
    if (out->data) out->data[out->len] = '\0';
    return compose(out);
}

/* Appends one code point in lower case, or what the reference makes of its sign. */
static vlp_status put_albef(vlp_buf *out, const char *text, size_t n) {
    if (n == 1 && strchr(",.'!?\"()*#:;~", *text)) return VLP_OK;
    if (n == 1 && strchr("-/ ", *text)) return put(out, " ", 1);
    uint32_t code, lower[2];
    char bytes[4];
    vlp_utf8_next(text, n, &code);
    int count = vlp_unicode_lower(code, lower);
    for (int i = 0; i < count; i++)
        VLP_TRY(vlp_buf_append(out, bytes, (size_t)vlp_utf8_put(lower[i], bytes)));
    return VLP_OK;
}

vlp_status vlp_caption_albef(vlp_buf *text, int max_words) {
    static const char person[] = "<person>";
    vlp_buf out = {0};
    vlp_status status = vlp_buf_reserve(&out, text->len + 1);
    int words = 1;
    for (size_t i = 0, n; i < text->len && status == VLP_OK; i += n) {
        n = vlp_utf8_sequence(text->data + i, text->len - i);
        if (strncasecmp(text->data + i, person, strlen(person)) == 0) {
            n = strlen(person);
            status = vlp_buf_puts(&out, "person");
            continue;
        }
        size_t before = out.len;
        status = put_albef(&out, text->data + i, n ? n : 1);
        n = n ? n : 1;
        words += out.len > before && out.data[out.len - 1] == ' ';
        if (max_words && words > max_words) break;
    }
    while (out.len && out.data[out.len - 1] == ' ') out.len--;
    if (out.data) out.data[out.len] = '\0';
    if (status != VLP_OK) {
        vlp_buf_free(&out);
        return status;
    }
    vlp_buf_free(text);
    *text = out;
    return VLP_OK;
}

int64_t vlp_caption_hash(const char *text, size_t len) {
    while (len && strchr(" .!?,;", text[len - 1]) && text[len - 1]) len--;
    char block[256];
    vlp_hash hash = {0, 0};
    for (size_t at = 0; at < len || at == 0; at += sizeof block) {
        size_t n = len - at < sizeof block ? len - at : sizeof block;
        for (size_t i = 0; i < n; i++) {
            char c = text[at + i];
            block[i] = c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
        }
        hash = vlp_hash_more(hash, block, n);
    }
    return (int64_t)hash.low;
}
