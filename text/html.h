/* HTML character references as python's html.unescape() reads them. Private to text/. */
#ifndef VLP_TEXT_HTML_H
#define VLP_TEXT_HTML_H

#include <stdbool.h>
#include <stddef.h>

/* The characters of a name, which may end with ';' ("eacute;", "amp"), as UTF-8, not
 * NUL-terminated; NULL for none. */
const char *vlp_html_entity(const char *name, size_t len, size_t *value_len);

/* text with every reference replaced once, at most max bytes; out is not text. */
size_t vlp_html_unescape(const char *text, size_t len, char *out, size_t max);

#endif
