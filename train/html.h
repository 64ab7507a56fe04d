/* Self-contained HTML pages: no script, no outside resource; pictures lie inside as data URIs.
 *
 *     vlp_html_open(&page, "a title");
 *     vlp_buf_puts(&page, "<p>");  vlp_html_text(&page, caption);  vlp_buf_puts(&page, "</p>");
 *     vlp_html_close(&page); */
#ifndef VLP_TRAIN_HTML_H
#define VLP_TRAIN_HTML_H

#include "core/memory.h"
#include "vision/image.h"

/* Head with style and a policy that forbids everything but inline styles and data pictures, the
 * opening of the body, and the title as its heading. */
vlp_status vlp_html_open(vlp_buf *page, const char *title);
vlp_status vlp_html_close(vlp_buf *page);

/* text as it is meant, in element content and in quoted attributes: & < > " ' become entities,
 * malformed UTF-8 and control characters U+FFFD. */
vlp_status vlp_html_text(vlp_buf *page, const char *text);

/* A path as a file: address for a quoted attribute. */
vlp_status vlp_html_file_address(vlp_buf *page, const char *path);

/* <img> with a JPEG thumbnail whose sides are at most `side`. */
vlp_status vlp_html_picture(vlp_buf *page, const vlp_image *image, int side, const char *caption);
/* RFC 4648, with padding. */
vlp_status vlp_base64(vlp_buf *out, const uint8_t *data, size_t len);

#endif
