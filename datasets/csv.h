/* Delimited text as RFC 4180 has it: quoted fields may hold delimiters, newlines and "" for a
 * quote. What real files add is accepted: CRLF, a byte order mark, blanks around fields, quotes
 * inside unquoted fields. A quote that never closes costs its own line only. */
#ifndef VLP_DATASETS_CSV_H
#define VLP_DATASETS_CSV_H

#include "core/memory.h"

#include <stdbool.h>

typedef struct {
    const char *text;
    size_t len, at;
    char delimiter;
    bool quotes;  /* whether " quotes; TSV files often mean it literally */
    int64_t line; /* of the record read last, from 1 */
    int64_t next_line;
    vlp_buf record; /* the fields, one after another, each with a NUL behind it */
    size_t *starts; /* [fields] offsets into record */
    size_t *lens;
    size_t fields, capacity;
} vlp_csv;

enum { VLP_CSV_RECORD_MAX = 1 << 20, VLP_CSV_FIELDS_MAX = 4096 };

/* text is borrowed. Release with vlp_csv_close. */
void vlp_csv_open(vlp_csv *csv, const char *text, size_t len, char delimiter);
void vlp_csv_close(vlp_csv *csv);

/* Reads the next record that is not blank. *more is false at the end. *bad names what is wrong with
 * the record (NULL = fine); reading goes on behind it. */
vlp_status vlp_csv_next(vlp_csv *csv, bool *more, const char **bad);
const char *vlp_csv_field(const vlp_csv *csv, size_t index); /* "" beyond the last */
size_t vlp_csv_field_len(const vlp_csv *csv, size_t index);

/* The delimiter of , tab ; | that the first line has most often outside quotes; 0 when none. */
char vlp_csv_delimiter(const char *text, size_t len);

#endif
