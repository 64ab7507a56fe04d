/* The first import of an index, which may be of any size: secondary indexes are dropped, rows are
 * appended, and the indexes are sorted into being at the end, groups of duplicates with them. Rows
 * inserted one by one into the index of hashes would each touch another page.
 *
 * A program that is killed in between leaves rows without indexes; opening the database for writing
 * makes them. */
#ifndef VLP_DATASETS_BULK_H
#define VLP_DATASETS_BULK_H

#include "core/hash.h"
#include "datasets/db.h"

vlp_status vlp_bulk_begin(vlp_db *db);
/* Makes the indexes that are missing and settles all groups; nothing when none is. *shared, which
 * may be NULL: how many contents several images have. */
vlp_status vlp_bulk_end(vlp_db *db, int64_t *shared);

/* How many indexes are missing: vlp_bulk_end has something to do. */
vlp_status vlp_bulk_missing(vlp_db *db, int64_t *indexes);

/* After a change of members: the split and the first id of a hash's group, by the two statements
 * below. The split with the highest rank wins (datasets/split.h). */
#define VLP_GROUP_ASKED "SELECT asked FROM images WHERE hash=?1 ORDER BY id"
#define VLP_GROUP_SETTLE                                                                           \
    "UPDATE images SET split=?2, group_id=(SELECT min(id) FROM images WHERE hash=?1)"              \
    " WHERE hash=?1"
vlp_status vlp_group_settle(vlp_stmt *asked, vlp_stmt *settle, const uint8_t key[16]);

#endif
