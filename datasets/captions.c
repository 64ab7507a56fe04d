#include "datasets/captions.h"

static const char query[] =
    "SELECT c.text FROM captions c LEFT JOIN images i ON i.id = c.image_id"
    " WHERE (?1 IS NULL OR coalesce(i.split, c.split) = ?1)"
    " AND (c.image_id IS NULL OR i.state <> 2)" /* VLP_IMAGE_BAD */
    " AND NOT EXISTS (SELECT 1 FROM captions d WHERE d.image_id = c.image_id"
    " AND d.text = c.text AND d.id < c.id) ORDER BY c.id";

vlp_status vlp_captions_each(const vlp_index *index, const char *split, vlp_caption_fn each,
                             void *user) {
    vlp_stmt *stmt;
    VLP_TRY(vlp_stmt_new(&stmt, vlp_index_db(index), query));
    vlp_bind_text(stmt, 1, split, -1);
    bool row = true;
    vlp_status status;
    while ((status = vlp_stmt_step(stmt, &row)) == VLP_OK && row) {
        int64_t len;
        const char *text = vlp_column_text(stmt, 0, &len);
        status = each(text, len, user);
        if (status != VLP_OK) break;
    }
    vlp_stmt_free(stmt);
    return status;
}
