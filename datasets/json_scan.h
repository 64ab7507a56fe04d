/* Huge JSON files element by element: finds where each element of an array begins and ends, so that
 * only one is parsed at a time and memory does not grow with the file. */
#ifndef VLP_DATASETS_JSON_SCAN_H
#define VLP_DATASETS_JSON_SCAN_H

#include "core/json.h"

/* Calls `element` for every element of the array under the top-level key (NULL: the file is the
 * array itself). The text of an element is checked by whoever parses it; broken nesting outside is
 * an error that names `where` and the byte. An absent key is VLP_ERR_NOT_FOUND. */
typedef vlp_status (*vlp_json_element_fn)(const char *text, size_t len, int64_t number, void *user);
vlp_status vlp_json_scan(const char *text, size_t len, const char *key, const char *where,
                         vlp_json_element_fn element, void *user);

/* Every element of an array, or every line that is not blank of JSON Lines. */
vlp_status vlp_json_each(const char *text, size_t len, const char *where,
                         vlp_json_element_fn element, void *user);

/* Parses after making the bytes acceptable: malformed UTF-8 and \u0000 become U+FFFD. */
vlp_status vlp_json_parse_repaired(vlp_json **out, const char *text, size_t len, const char *where,
                                   vlp_buf *scratch);

#endif
