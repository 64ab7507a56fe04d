#include "datasets/eval_data.h"

#include <stdlib.h>
#include <string.h>

/* Texts are gathered as offsets first: the block moves while it grows. */
typedef struct {
    vlp_eval_data *data;
    vlp_buf text;
    int64_t capacity;
} gatherer;

static vlp_status grow(gatherer *g) {
    vlp_eval_data *d = g->data;
    if (d->n_captions < g->capacity) return VLP_OK;
    int64_t capacity = g->capacity ? 2 * g->capacity : 1024;
    void **lists[] = {(void **)&d->captions, (void **)&d->caption_images,
                      (void **)&d->caption_groups};
    for (size_t i = 0; i < VLP_COUNT(lists); i++) {
        void *list = vlp_realloc(*lists[i], (size_t)capacity * 8);
        if (!list) return VLP_ERR_MEMORY;
        *lists[i] = list;
    }
    g->capacity = capacity;
    return VLP_OK;
}

static vlp_status add_text(gatherer *g, vlp_stmt *stmt, int column, const char **out) {
    int64_t len;
    const char *text = vlp_column_text(stmt, column, &len);
    *out = (const char *)(uintptr_t)g->text.len;
    VLP_TRY(vlp_buf_append(&g->text, text, strlen(text)));
    return vlp_buf_append(&g->text, "", 1);
}

static vlp_status add_captions(gatherer *g, vlp_stmt *stmt, int64_t image) {
    vlp_eval_data *d = g->data;
    vlp_bind_int(stmt, 1, d->image_ids[image]);
    while (true) {
        bool row;
        VLP_TRY(vlp_stmt_step(stmt, &row));
        if (!row) return VLP_OK;
        VLP_TRY(grow(g));
        VLP_TRY(add_text(g, stmt, 0, &d->captions[d->n_captions]));
        d->caption_groups[d->n_captions] = vlp_column_int(stmt, 1);
        d->caption_images[d->n_captions++] = image;
    }
}

static vlp_status add_image(gatherer *g, vlp_stmt *stmt, int64_t image) {
    bool row;
    vlp_bind_int(stmt, 1, g->data->image_ids[image]);
    VLP_TRY(vlp_stmt_step(stmt, &row));
    g->data->labels[image] = (const char *)UINTPTR_MAX;
    if (!row) return VLP_OK;
    g->data->image_groups[image] = vlp_column_int(stmt, 0);
    vlp_status status = VLP_OK;
    if (!vlp_column_is_null(stmt, 1)) status = add_text(g, stmt, 1, &g->data->labels[image]);
    vlp_stmt_reset(stmt);
    return status;
}

static vlp_status gather(gatherer *g, vlp_stmt *images, vlp_stmt *captions) {
    for (int64_t i = 0; i < g->data->n_images; i++) {
        VLP_TRY(add_image(g, images, i));
        VLP_TRY(add_captions(g, captions, i));
    }
    return VLP_OK;
}

static void resolve(gatherer *g) {
    vlp_eval_data *d = g->data;
    d->text = g->text.data;
    for (int64_t i = 0; i < d->n_captions; i++)
        d->captions[i] = d->text + (uintptr_t)d->captions[i];
    for (int64_t i = 0; i < d->n_images; i++) {
        uintptr_t at = (uintptr_t)d->labels[i];
        d->labels[i] = at == UINTPTR_MAX ? NULL : d->text + at;
    }
}

static vlp_status read_all(vlp_eval_data *out, const vlp_index *index) {
    static const char image_query[] = "SELECT group_id, label FROM images WHERE id=?1";
    static const char caption_query[] =
        "SELECT text, hash FROM captions WHERE image_id=?1 ORDER BY id";
    out->image_groups = vlp_alloc_zero((size_t)out->n_images, sizeof(int64_t));
    out->labels = vlp_alloc_zero((size_t)out->n_images, sizeof *out->labels);
    if (!out->image_groups || !out->labels) return VLP_ERR_MEMORY;
    vlp_stmt *images = NULL, *captions = NULL;
    gatherer g = {.data = out};
    vlp_status status = vlp_stmt_new(&images, vlp_index_db(index), image_query);
    if (status == VLP_OK) status = vlp_stmt_new(&captions, vlp_index_db(index), caption_query);
    if (status == VLP_OK) status = gather(&g, images, captions);
    vlp_stmt_free(images);
    vlp_stmt_free(captions);
    if (status == VLP_OK)
        resolve(&g);
    else
        vlp_buf_free(&g.text);
    return status;
}

vlp_status vlp_eval_data_open(vlp_eval_data *out, const vlp_index *index, const char *split,
                              const char *source, int64_t max_images) {
    *out = (vlp_eval_data){0};
    vlp_rows rows;
    VLP_TRY(vlp_rows_open(&rows, index, VLP_ROWS_PAIRS, split, source));
    out->rows = rows;
    out->image_ids = rows.ids;
    out->n_images = max_images > 0 && max_images < rows.count ? max_images : rows.count;
    vlp_status status = read_all(out, index);
    if (status != VLP_OK) vlp_eval_data_close(out);
    return status;
}

void vlp_eval_data_close(vlp_eval_data *data) {
    vlp_rows_close(&data->rows);
    vlp_free(data->image_groups);
    vlp_free(data->labels);
    vlp_free(data->captions);
    vlp_free(data->caption_images);
    vlp_free(data->caption_groups);
    vlp_free(data->text);
    *data = (vlp_eval_data){0};
}
