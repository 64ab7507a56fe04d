#include "datasets/reader.h"

#include "datasets/stored.h"
#include "vision/transform.h"

#include <string.h>

struct vlp_reader {
    vlp_db *db;
    vlp_stmt *locate, *caption, *count, *nth, *question, *votes, *answer;
    vlp_buf path, text, answer_text, file;
    vlp_image whole;
    vlp_resize_scratch resize;
    vlp_container container;
};

vlp_status vlp_reader_open(vlp_reader **out, const char *index_path) {
    *out = NULL;
    vlp_reader *r = vlp_alloc_zero(1, sizeof *r);
    if (!r) return VLP_ERR_MEMORY;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_db_open(&r->db, index_path, VLP_DB_READ));
    VLP_TRY_DONE(vlp_db_exec(r->db, "PRAGMA cache_size=-4096"));
    VLP_TRY_DONE(vlp_stmt_new(&r->locate, r->db,
                              "SELECT id, group_id, offset, length, stored, width, height, hash,"
                              " path FROM images WHERE id=?1"));
    VLP_TRY_DONE(vlp_stmt_new(&r->caption, r->db,
                              "SELECT c.id, coalesce(c.image_id, 0), c.hash, c.text"
                              " FROM captions c WHERE c.id=?1"));
    VLP_TRY_DONE(vlp_stmt_new(&r->count, r->db, "SELECT count(*) FROM captions WHERE image_id=?1"));
    VLP_TRY_DONE(vlp_stmt_new(&r->nth, r->db,
                              "SELECT id, image_id, hash, text FROM captions WHERE image_id=?1"
                              " ORDER BY hash, text LIMIT 1 OFFSET ?2"));
    VLP_TRY_DONE(vlp_stmt_new(&r->question, r->db,
                              "SELECT id, image_id, id, text FROM questions WHERE id=?1"));
    VLP_TRY_DONE(
        vlp_stmt_new(&r->votes, r->db, "SELECT sum(votes) FROM answers WHERE question_id=?1"));
    VLP_TRY_DONE(vlp_stmt_new(&r->answer, r->db,
                              "SELECT text FROM (SELECT text, sum(votes) OVER (ORDER BY text)"
                              " AS upto FROM answers WHERE question_id=?1) WHERE upto>?2"
                              " ORDER BY upto LIMIT 1"));
done:
    if (status != VLP_OK)
        vlp_reader_free(r);
    else
        *out = r;
    return status;
}

void vlp_reader_free(vlp_reader *r) {
    if (!r) return;
    vlp_stmt_free(r->locate);
    vlp_stmt_free(r->caption);
    vlp_stmt_free(r->count);
    vlp_stmt_free(r->nth);
    vlp_stmt_free(r->question);
    vlp_stmt_free(r->votes);
    vlp_stmt_free(r->answer);
    vlp_db_free(r->db);
    vlp_container_close(&r->container);
    vlp_buf_free(&r->path);
    vlp_buf_free(&r->text);
    vlp_buf_free(&r->answer_text);
    vlp_buf_free(&r->file);
    vlp_image_free(&r->whole);
    vlp_resize_scratch_free(&r->resize);
    vlp_free(r);
}

static vlp_status keep_text(vlp_stmt *stmt, int column, vlp_buf *out) {
    int64_t len;
    const char *text = vlp_column_text(stmt, column, &len);
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_reserve(out, 1));
    return vlp_buf_append(out, text, (size_t)len);
}

static vlp_status read_located(vlp_reader *r, vlp_located *out) {
    int64_t len;
    const void *hash = vlp_column_blob(r->locate, 7, &len);
    *out = (vlp_located){
        .id = vlp_column_int(r->locate, 0),
        .group = vlp_column_int(r->locate, 1),
        .offset = vlp_column_int(r->locate, 2),
        .length = vlp_column_int(r->locate, 3),
        .stored = (vlp_stored)vlp_column_int(r->locate, 4),
        .width = (int)vlp_column_int(r->locate, 5),
        .height = (int)vlp_column_int(r->locate, 6),
        .hash = vlp_hash_stored(hash, len),
    };
    VLP_TRY(keep_text(r->locate, 8, &r->path));
    out->path = r->path.data;
    return VLP_OK;
}

vlp_status vlp_reader_locate(vlp_reader *r, int64_t image_id, vlp_located *out) {
    vlp_bind_int(r->locate, 1, image_id);
    bool row;
    VLP_TRY(vlp_stmt_step(r->locate, &row));
    if (!row)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: image %lld left the index while it was in use",
                        vlp_db_path(r->db), (long long)image_id);
    vlp_status status = read_located(r, out);
    vlp_stmt_reset(r->locate);
    return status;
}

static vlp_status read_grey(vlp_reader *r, const vlp_located *at, vlp_image *out) {
    int64_t n = (int64_t)at->width * at->height;
    if (n != at->length || n <= 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "%lld bytes for %d x %d pixels", (long long)at->length,
                        at->width, at->height);
    VLP_TRY(vlp_reader_bytes(r, at, &r->file));
    VLP_TRY(vlp_image_resize_memory(out, at->width, at->height));
    for (int64_t i = 0; i < n; i++) memset(out->pixels + 3 * i, (uint8_t)r->file.data[i], 3);
    return VLP_OK;
}

vlp_status vlp_reader_bytes(vlp_reader *r, const vlp_located *located, vlp_buf *out) {
    return vlp_stored_read(&r->container, located->path, located->offset, located->length,
                           located->stored, out);
}

static vlp_status shrink(vlp_reader *r, int short_side, vlp_image *out) {
    const vlp_image *whole = &r->whole;
    double factor =
        (double)short_side / (whole->width < whole->height ? whole->width : whole->height);
    vlp_resize_options options = {
        .width = whole->width < whole->height ? short_side : (int)(whole->width * factor + 0.5),
        .height = whole->width < whole->height ? (int)(whole->height * factor + 0.5) : short_side,
        .filter = VLP_RESIZE_BOX};
    vlp_image_view view = vlp_image_view_of(whole);
    return vlp_resize(out, &view, &options, &r->resize);
}

vlp_status vlp_reader_pixels(vlp_reader *r, const vlp_located *located,
                             const vlp_decode_options *decode, int short_side, vlp_image *out) {
    if (located->stored == VLP_STORED_GREY) return read_grey(r, located, out);
    VLP_TRY(vlp_reader_bytes(r, located, &r->file));
    VLP_TRY(vlp_image_decode(&r->whole, (const uint8_t *)r->file.data, r->file.len, decode));
    int side = r->whole.width < r->whole.height ? r->whole.width : r->whole.height;
    if (short_side > 0 && side > short_side) return shrink(r, short_side, out);
    vlp_image decoded = r->whole;
    r->whole = *out;
    *out = decoded;
    return VLP_OK;
}

static vlp_status read_caption(vlp_reader *r, vlp_stmt *stmt, vlp_caption_row *out) {
    bool row;
    VLP_TRY(vlp_stmt_step(stmt, &row));
    if (!row)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: a caption left the index while it was in use",
                        vlp_db_path(r->db));
    *out = (vlp_caption_row){.id = vlp_column_int(stmt, 0),
                             .image_id = vlp_column_int(stmt, 1),
                             .group = vlp_column_int(stmt, 2)};
    vlp_status status = keep_text(stmt, 3, &r->text);
    vlp_stmt_reset(stmt);
    out->text = r->text.data;
    out->len = r->text.len;
    return status;
}

vlp_status vlp_reader_caption(vlp_reader *r, int64_t caption_id, vlp_caption_row *out) {
    vlp_bind_int(r->caption, 1, caption_id);
    return read_caption(r, r->caption, out);
}

vlp_status vlp_reader_draw_caption(vlp_reader *r, int64_t image_id, vlp_rng *rng,
                                   vlp_caption_row *out) {
    vlp_bind_int(r->count, 1, image_id);
    bool row;
    VLP_TRY(vlp_stmt_step(r->count, &row));
    int64_t n = vlp_column_int(r->count, 0);
    vlp_stmt_reset(r->count);
    if (n == 0)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "image %lld has no caption", (long long)image_id);
    vlp_bind_int(r->nth, 1, image_id);
    vlp_bind_int(r->nth, 2, (int64_t)vlp_rng_below(rng, (uint64_t)n));
    return read_caption(r, r->nth, out);
}

static vlp_status draw_answer(vlp_reader *r, int64_t question, vlp_rng *rng, vlp_buf *out) {
    bool row;
    vlp_bind_int(r->votes, 1, question);
    VLP_TRY(vlp_stmt_step(r->votes, &row));
    int64_t votes = row ? vlp_column_int(r->votes, 0) : 0;
    vlp_stmt_reset(r->votes);
    if (votes <= 0)
        return VLP_FAIL(VLP_ERR_NOT_FOUND, "question %lld has no answer", (long long)question);
    vlp_bind_int(r->answer, 1, question);
    vlp_bind_int(r->answer, 2, (int64_t)vlp_rng_below(rng, (uint64_t)votes));
    VLP_TRY(vlp_stmt_step(r->answer, &row));
    vlp_status status =
        row ? keep_text(r->answer, 0, out)
            : VLP_FAIL(VLP_ERR_NOT_FOUND, "question %lld has no answer", (long long)question);
    vlp_stmt_reset(r->answer);
    return status;
}

vlp_status vlp_reader_question(vlp_reader *r, int64_t question_id, vlp_rng *rng,
                               vlp_caption_row *out) {
    vlp_bind_int(r->question, 1, question_id);
    VLP_TRY(read_caption(r, r->question, out));
    VLP_TRY(draw_answer(r, question_id, rng, &r->answer_text));
    out->answer = r->answer_text.data;
    out->answer_len = r->answer_text.len;
    return VLP_OK;
}
