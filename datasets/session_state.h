/* The inside of an import run, shared by the session files only. */
#ifndef VLP_DATASETS_SESSION_STATE_H
#define VLP_DATASETS_SESSION_STATE_H

#include "datasets/bitset.h"
#include "datasets/probe.h"
#include "datasets/seen.h"
#include "datasets/session.h"
#include "datasets/split.h"
#include "datasets/stream.h"

#include <time.h>

typedef enum {
    Q_IMAGE_FIND,
    Q_IMAGE_CHANGE,
    Q_IMAGE_ASKED,
    Q_GROUP,
    Q_TWINS,
    Q_IMAGE_MOVE,
    Q_CAPTIONS_MOVE,
    Q_IMAGE_PLACE,
    Q_IMAGE_GONE,
    Q_GROUP_ASKED,
    Q_SETTLE,
    Q_EMBEDDINGS_DROP,
    Q_IMAGE_DROP,
    Q_IMAGES_OF_SOURCE,
    Q_CAPTION_FIND,
    Q_TEXT_FIND,
    Q_CAPTION_DROP,
    Q_CAPTIONS_OF_SOURCE,
    Q_CAPTIONS_OF_IMAGE,
    Q_CAPTIONS_FORGET,
    Q_CAPTIONS_TIME,
    Q_CAPTIONS_SET_TIME,
    Q_QUESTION_ADD,
    Q_QUESTION_FIND,
    Q_QUESTIONS_DROP,
    Q_ANSWER_ADD,
    Q_NEXT_ID,
    Q_COUNT
} vlp_session_query;

/* Tables that rows are added to. */
typedef enum {
    VLP_TABLE_IMAGES,
    VLP_TABLE_CAPTIONS,
    VLP_TABLE_SKIPPED,
    VLP_SESSION_TABLES
} vlp_session_table;

struct vlp_session {
    vlp_index *index;
    vlp_db *db, *scratch;
    const vlp_import_options *options;
    vlp_import_report *report;
    vlp_stmt *query[Q_COUNT], *insert[VLP_SESSION_TABLES];
    char *source, *root;
    int64_t source_id, next_image;
    vlp_probe_limits limits;
    vlp_split_shares shares;
    vlp_bitset images_seen, captions_seen;
    vlp_buf file, caption, last_path, named;
    /* the image row before: five captions of one image in a row cost one look-up */
    int64_t last_offset, last_id;
    vlp_skip_reason last_reason, final_reason; /* of that row; of any row */
    char last_detail[256];
    int64_t fresh_image; /* new in this run and not left since: its captions need no look-up */
    bool in_transaction, albef;
    bool bulk;          /* the first rows of an index: nothing to compare with (datasets/bulk.h) */
    vlp_stream *stream; /* of these; look at the tables only behind vlp_session_written */
    vlp_seen seen;
    int64_t operations, rows, usable;
    struct timespec committed, reported;
};

/* Adds a row: at once, or by the stream. Column numbers are those of the statements. */
enum { VLP_IMAGES_CAPTIONS_TIME = 18 };
vlp_status vlp_session_inserts_open(vlp_session *session);
void vlp_session_inserts_close(vlp_session *session);
vlp_status vlp_session_insert(vlp_session *session, vlp_session_table table,
                              const vlp_value *values);
/* All rows that were added are in their tables. */
vlp_status vlp_session_written(vlp_session *session);
/* Counts an operation; commits and reports now and then. */
vlp_status vlp_session_tick(vlp_session *session);
/* Drops an image row and settles what is left of its group. */
vlp_status vlp_session_drop_image(vlp_session *session, int64_t id);

#endif
