/* Rows on their way into tables that only grow: gathered in blocks, and written many at a statement
 * by a thread of their own while the caller reads on. Within a table the order is kept.
 *
 * Between vlp_stream_wait and the next row the connection is the caller's; at any other time it is
 * the thread's. A failed write shows in the next row or wait. */
#ifndef VLP_DATASETS_STREAM_H
#define VLP_DATASETS_STREAM_H

#include "datasets/db.h"

#include <string.h>

typedef struct vlp_stream vlp_stream;

typedef struct {
    const char *head; /* "INSERT INTO images(id, path) VALUES" */
    int columns;
} vlp_stream_table;

typedef enum { VLP_VALUE_NULL, VLP_VALUE_INT, VLP_VALUE_TEXT, VLP_VALUE_BLOB } vlp_value_kind;
typedef struct {
    vlp_value_kind kind;
    int64_t number; /* or how many bytes */
    const void *bytes;
} vlp_value;

static inline vlp_value vlp_value_int(int64_t number) {
    return (vlp_value){VLP_VALUE_INT, number, NULL};
}

static inline vlp_value vlp_value_text(const char *text) {
    if (!text) return (vlp_value){VLP_VALUE_NULL, 0, NULL};
    return (vlp_value){VLP_VALUE_TEXT, (int64_t)strlen(text), text};
}

static inline vlp_value vlp_value_bytes(vlp_value_kind kind, const void *bytes, size_t len) {
    return (vlp_value){kind, (int64_t)len, bytes};
}

/* Binds values[n] to parameters 1 .. n; borrowed. */
void vlp_bind_values(vlp_stmt *stmt, int first, const vlp_value *values, int n);

/* tables[n] outlive the stream. */
vlp_status vlp_stream_new(vlp_stream **out, vlp_db *db, const vlp_stream_table *tables, int n);
/* Copies values[columns of the table]. */
vlp_status vlp_stream_row(vlp_stream *stream, int table, const vlp_value *values);
/* Sets an integer column of the table's last row; false when that row is written already. */
bool vlp_stream_amend(vlp_stream *stream, int table, int column, int64_t number);
/* Writes all rows. */
vlp_status vlp_stream_wait(vlp_stream *stream);
/* Rows that were not waited for are lost. NULL is legal. */
void vlp_stream_free(vlp_stream *stream);

#endif
