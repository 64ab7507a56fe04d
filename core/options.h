/* Options as tables: {key, type, where in the struct, range, default, help}. One table reads JSON,
 * takes --set key=value, checks ranges, writes JSON back and prints help. An unknown key is an
 * error that suggests the nearest known one. */
#ifndef VLP_CORE_OPTIONS_H
#define VLP_CORE_OPTIONS_H

#include "core/json.h"

typedef enum {
    VLP_OPTION_INT,    /* int64_t */
    VLP_OPTION_DOUBLE, /* double */
    VLP_OPTION_BOOL,   /* bool */
    VLP_OPTION_CHOICE, /* int: an index into choices */
    VLP_OPTION_TEXT,   /* char[VLP_OPTION_TEXT_BYTES] */
} vlp_option_type;

enum { VLP_OPTION_TEXT_BYTES = 128 };

typedef struct {
    const char *key; /* may hold dots: "vision.width" */
    vlp_option_type type;
    size_t offset;
    double least, most;         /* inclusive, for numbers; both 0 = any */
    const char *fallback;       /* the default as text */
    const char *help;           /* one line */
    const char *const *choices; /* NULL-terminated */
} vlp_option;

typedef struct {
    const vlp_option *rows;
    size_t count;
} vlp_options;

/* Sets every field to its default. */
void vlp_options_defaults(vlp_options table, void *target);
/* One key from text; `where` names the source in errors, for instance "--set". */
vlp_status vlp_options_set(vlp_options table, void *target, const char *key, const char *value,
                           const char *where);
/* Every member of a JSON object; nested objects give dotted keys. */
vlp_status vlp_options_read(vlp_options table, void *target, const vlp_json *object,
                            const char *where);
/* Only the keys of the table, from an object that others wrote: the rest is passed over, and what
 * is absent or null keeps its value. Sections of dotted keys may be absent too. */
vlp_status vlp_options_pick(vlp_options table, void *target, const vlp_json *object,
                            const char *where);
/* A flat or (for dotted keys) nested object of all fields. */
vlp_json *vlp_options_write(vlp_options table, const void *target);
/* "key (default): help" lines. */
vlp_status vlp_options_help(vlp_options table, vlp_buf *out);

#endif
