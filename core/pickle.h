/* Python pickles as plain data. Nothing is called or imported: a pickle's program is run by a small
 * machine that only builds the values below, and where Python would call a function this notes
 * which one and with what. Globals that the caller does not allow are refused by name.
 *
 *     vlp_pickle *pickle;
 *     VLP_TRY(vlp_pickle_read(&pickle, data, len, allowed, path));
 *     const vlp_pickle_value *top = vlp_pickle_top(pickle);
 *     vlp_pickle_free(pickle);
 *
 * Values may refer to themselves (a list in itself), so whoever walks them bounds the depth. */
#ifndef VLP_CORE_PICKLE_H
#define VLP_CORE_PICKLE_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    VLP_PICKLE_NONE,
    VLP_PICKLE_BOOL,
    VLP_PICKLE_INT,
    VLP_PICKLE_FLOAT,
    VLP_PICKLE_TEXT,   /* or bytes; not NUL-terminated */
    VLP_PICKLE_TUPLE,  /* items */
    VLP_PICKLE_LIST,   /* items */
    VLP_PICKLE_DICT,   /* items: key, value, key, value ... */
    VLP_PICKLE_GLOBAL, /* text: "module.name" */
    VLP_PICKLE_CALL,   /* callee(arguments): a function's result or a class's instance; items as a
                          dict's, state what its __setstate__ would receive (or NULL) */
    VLP_PICKLE_PERSISTENT, /* arguments: what stands for an object outside */
} vlp_pickle_kind;

typedef struct vlp_pickle_value vlp_pickle_value;
struct vlp_pickle_value {
    vlp_pickle_kind kind;
    int64_t integer; /* BOOL too */
    double real;
    const char *text;
    size_t bytes;
    vlp_pickle_value **items;
    size_t count, capacity;
    vlp_pickle_value *callee, *arguments, *state;
};

typedef struct vlp_pickle vlp_pickle;

/* Whether a pickle may name this global ("torch._utils", "_rebuild_tensor_v2"). */
typedef bool vlp_pickle_allowed(const char *module, const char *name);

/* Reads one pickle, protocol 0 to 5 as far as plain data, tensors and their dicts need it. `where`
 * names the file in messages. VLP_ERR_UNSUPPORTED for a global that is not allowed or an opcode
 * that data does not need, VLP_ERR_FORMAT for a damaged one. Text points into data, which the
 * caller keeps alive. */
vlp_status vlp_pickle_read(vlp_pickle **out, const uint8_t *data, size_t len,
                           vlp_pickle_allowed *allowed, const char *where);
void vlp_pickle_free(vlp_pickle *pickle);
const vlp_pickle_value *vlp_pickle_top(const vlp_pickle *pickle);

bool vlp_pickle_is_text(const vlp_pickle_value *value, const char *text);
/* Whether the value is the named global, or a call of it: "collections.OrderedDict". */
bool vlp_pickle_is_global(const vlp_pickle_value *value, const char *name);
bool vlp_pickle_is_call(const vlp_pickle_value *value, const char *name);
/* The value of a text key in a dict, or NULL. */
const vlp_pickle_value *vlp_pickle_key(const vlp_pickle_value *dict, const char *key);

#endif
