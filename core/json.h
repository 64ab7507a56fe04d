/* JSON access: a thin layer over one library, so that files, keys and types are named in errors.
 *
 * Values are reference counted by the library underneath: an owner calls vlp_json_free once; what
 * the getters return is borrowed from the value that it was got from. */
#ifndef VLP_CORE_JSON_H
#define VLP_CORE_JSON_H

#include "core/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct json_t vlp_json;

/* Reading. Errors name the file (or `where`), line and column. Duplicate keys are refused. Integers
 * beyond 64 bits become reals, as "model_max_length" often is one. */
vlp_status vlp_json_load(vlp_json **out, const char *path);
vlp_status vlp_json_parse(vlp_json **out, const char *text, size_t len, const char *where);
void vlp_json_free(vlp_json *value); /* NULL is legal */

/* Types. */
bool vlp_json_is_object(const vlp_json *value);
bool vlp_json_is_array(const vlp_json *value);
bool vlp_json_is_string(const vlp_json *value);
bool vlp_json_is_number(const vlp_json *value); /* integer or real */
bool vlp_json_is_integer(const vlp_json *value);
bool vlp_json_is_bool(const vlp_json *value);
bool vlp_json_is_null(const vlp_json *value);

/* Looking up. `path` is "a.b.c" through nested objects; NULL when absent (or when object is NULL).
 */
vlp_json *vlp_json_get(const vlp_json *object, const char *path);
vlp_json *vlp_json_key(const vlp_json *object, const char *key); /* one key, dots are literal */
size_t vlp_json_len(const vlp_json *array);                      /* 0 for what is not an array */
vlp_json *vlp_json_at(const vlp_json *array, size_t index);

/* What a key must hold where it is given: absent and null pass. VLP_ERR_FORMAT names where (the
 * file), the key and what is wanted; so it does when the object, or a section on the way to the
 * key, is no object. */
typedef enum {
    VLP_JSON_STRING,
    VLP_JSON_INTEGER,
    VLP_JSON_NUMBER,
    VLP_JSON_BOOL,
    VLP_JSON_OBJECT,
    VLP_JSON_ARRAY,
} vlp_json_type;
typedef struct {
    const char *path;
    vlp_json_type type;
} vlp_json_typed;
vlp_status vlp_json_expect(const vlp_json *object, const vlp_json_typed *keys, size_t n,
                           const char *where);

/* Values with a fallback for what is absent or of another type (vlp_json_expect refuses the
 * latter). Strings are UTF-8, borrowed. */
const char *vlp_json_string(const vlp_json *object, const char *path, const char *fallback);
int64_t vlp_json_int(const vlp_json *object, const char *path, int64_t fallback);
double vlp_json_double(const vlp_json *object, const char *path, double fallback);
bool vlp_json_bool(const vlp_json *object, const char *path, bool fallback);

/* The value itself; "" / 0 / false for another type. */
const char *vlp_json_as_string(const vlp_json *value);
int64_t vlp_json_as_int(const vlp_json *value);
double vlp_json_as_double(const vlp_json *value);
bool vlp_json_as_bool(const vlp_json *value);

/* Iteration over an object's members in file order:
 *     for (void *it = vlp_json_first(o); it; it = vlp_json_next(o, it))
 *         use(vlp_json_iter_key(it), vlp_json_iter_value(it)); */
void *vlp_json_first(const vlp_json *object);
void *vlp_json_next(const vlp_json *object, void *iter);
const char *vlp_json_iter_key(void *iter);
vlp_json *vlp_json_iter_value(void *iter);

/* Building. Setters copy strings, and take ownership of `value` even on failure. Invalid UTF-8 in
 * strings is replaced by U+FFFD. NULL results and out-of-memory are reported by vlp_json_dump. */
vlp_json *vlp_json_new_object(void);
vlp_json *vlp_json_new_array(void);
vlp_json *vlp_json_new_string(const char *text);
vlp_json *vlp_json_new_int(int64_t value);
vlp_json *vlp_json_new_double(double value); /* not finite -> null */
vlp_json *vlp_json_new_bool(bool value);
vlp_json *vlp_json_copy(const vlp_json *value); /* deep */
void vlp_json_set(vlp_json *object, const char *key, vlp_json *value);
void vlp_json_set_string(vlp_json *object, const char *key, const char *text);
void vlp_json_set_int(vlp_json *object, const char *key, int64_t value);
void vlp_json_set_double(vlp_json *object, const char *key, double value);
void vlp_json_set_bool(vlp_json *object, const char *key, bool value);
void vlp_json_append(vlp_json *array, vlp_json *value);
void vlp_json_remove(vlp_json *object, const char *key);

/* Appends text to buf: indent 0 = one line; doubles keep 9 significant digits. */
vlp_status vlp_json_dump(const vlp_json *value, int indent, vlp_buf *buf);
/* vlp_json_dump with indent 2 and a newline, written atomically to path. */
vlp_status vlp_json_save(const vlp_json *value, const char *path);

const char *vlp_json_version(void); /* of jansson, at run time */

#endif
