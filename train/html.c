#include "train/html.h"

#include "text/unicode.h"
#include "vision/thumbnail.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
    "style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<style>\n"
    "body{font:16px/1.45 system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;"
    "color:#1c1c1c;background:#fff}\n"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}\n"
    "table{border-collapse:collapse}td,th{padding:.2em .7em;text-align:left;"
    "border-bottom:1px solid #ddd}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    ".chance{color:#666}.right{color:#0a6b2d;font-weight:600}\n"
    ".gallery{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0;width:13em}\n"
    "figure img{display:block;max-width:100%;max-height:13em;border-radius:4px}\n"
    "figcaption{font-size:.85em;overflow-wrap:anywhere}ol{padding-left:1.4em;margin:.3em 0}\n"
    ".heat td{padding:0;width:1.7em;height:1.7em;text-align:center;font-size:.7em;border:0}\n"
    ".heat th{font-size:.75em;font-weight:400;padding:.1em .4em;border:0}\n"
    ".heat thead th{writing-mode:vertical-rl}\n"
    "</style>\n<title>";

vlp_status vlp_html_open(vlp_buf *page, const char *title) {
    VLP_TRY(vlp_buf_puts(page, head));
    VLP_TRY(vlp_html_text(page, title));
    VLP_TRY(vlp_buf_puts(page, "</title>\n</head>\n<body>\n<h1>"));
    VLP_TRY(vlp_html_text(page, title));
    return vlp_buf_puts(page, "</h1>\n");
}

vlp_status vlp_html_close(vlp_buf *page) {
    return vlp_buf_puts(page, "</body>\n</html>\n");
}

static const char *entity(uint32_t code) {
    switch (code) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

vlp_status vlp_html_text(vlp_buf *page, const char *text) {
    for (size_t left = strlen(text); left > 0;) {
        uint32_t code = 0;
        int n = vlp_utf8_next(text, left, &code);
        bool space = n && (code == '\n' || code == '\t' || code == '\r');
        bool control = n && !space && (code < 32 || (code >= 127 && code < 160));
        const char *instead = n && !control ? entity(code) : "\xEF\xBF\xBD";
        size_t step = n ? (size_t)n : 1;
        VLP_TRY(instead ? vlp_buf_puts(page, instead) : vlp_buf_append(page, text, step));
        text += step;
        left -= step;
    }
    return VLP_OK;
}

vlp_status vlp_html_file_address(vlp_buf *page, const char *path) {
    char *absolute = realpath(path, NULL);
    vlp_status status = vlp_buf_puts(page, "file://");
    for (const char *p = absolute ? absolute : path; *p && status == VLP_OK; p++)
        status = isalnum((unsigned char)*p) || strchr("/-._~", *p)
                     ? vlp_buf_append(page, p, 1)
                     : vlp_buf_printf(page, "%%%02X", (unsigned char)*p);
    free(absolute);
    return status;
}

vlp_status vlp_base64(vlp_buf *out, const uint8_t *data, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    VLP_TRY(vlp_buf_reserve(out, (len + 2) / 3 * 4 + 1));
    for (size_t i = 0; i < len; i += 3) {
        uint32_t bits = (uint32_t)data[i] << 16;
        if (i + 1 < len) bits |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < len) bits |= data[i + 2];
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        i + 1 < len ? digits[bits >> 6 & 63] : '=',
                        i + 2 < len ? digits[bits & 63] : '='};
        VLP_TRY(vlp_buf_append(out, four, 4));
    }
    return VLP_OK;
}

vlp_status vlp_html_picture(vlp_buf *page, const vlp_image *image, int side, const char *caption) {
    vlp_buf jpeg = {0};
    vlp_status status = vlp_thumbnail(image, side, &jpeg);
    if (status == VLP_OK) status = vlp_buf_puts(page, "<img src=\"data:image/jpeg;base64,");
    if (status == VLP_OK) status = vlp_base64(page, (const uint8_t *)jpeg.data, jpeg.len);
    if (status == VLP_OK) status = vlp_buf_puts(page, "\" alt=\"");
    if (status == VLP_OK) status = vlp_html_text(page, caption);
    if (status == VLP_OK) status = vlp_buf_puts(page, "\">");
    vlp_buf_free(&jpeg);
    return status;
}
