#include "datasets/stream.h"

#include "core/memory.h"

#include <pthread.h>
#include <stdio.h>

enum { TABLES = 4, ROWS = 512, TOGETHER = 32, COLUMNS = 32 };

typedef struct {
    vlp_value *values; /* [rows, columns]; bytes are offsets into text until they are written */
    int rows;
} table_block;

typedef struct {
    table_block tables[TABLES];
    vlp_buf text;
} block;

struct vlp_stream {
    vlp_db *db;
    const vlp_stream_table *tables;
    int n_tables;
    vlp_stmt *one[TABLES], *many[TABLES];
    block blocks[2];
    int filling; /* blocks[filling] is the caller's, the other the thread's while busy */

    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool busy, stop;
    vlp_status status; /* of the first failure; ends everything */
    char error[512];
};

void vlp_bind_values(vlp_stmt *stmt, int first, const vlp_value *values, int n) {
    for (int i = 0; i < n; i++) {
        const vlp_value *v = &values[i];
        if (v->kind == VLP_VALUE_INT)
            vlp_bind_int(stmt, first + i, v->number);
        else if (v->kind == VLP_VALUE_TEXT)
            vlp_bind_text(stmt, first + i, v->bytes, v->number);
        else if (v->kind == VLP_VALUE_BLOB)
            vlp_bind_blob(stmt, first + i, v->bytes, v->number);
        else
            vlp_bind_null(stmt, first + i);
    }
}

static vlp_status insert_rows(vlp_stmt *stmt, const vlp_value *values, int n) {
    vlp_bind_values(stmt, 1, values, n);
    return vlp_stmt_run(stmt);
}

static vlp_status write_table(vlp_stream *s, int table, table_block *t, const char *text) {
    if (!text) text = ""; /* nothing but empty texts */
    int columns = s->tables[table].columns, row = 0;
    for (int i = 0; i < t->rows * columns; i++)
        if (t->values[i].kind >= VLP_VALUE_TEXT)
            t->values[i].bytes = text + (uintptr_t)t->values[i].bytes;
    for (; row + TOGETHER <= t->rows; row += TOGETHER)
        VLP_TRY(insert_rows(s->many[table], t->values + row * columns, TOGETHER * columns));
    for (; row < t->rows; row++)
        VLP_TRY(insert_rows(s->one[table], t->values + row * columns, columns));
    return VLP_OK;
}

static vlp_status write_block(vlp_stream *s, block *b) {
    for (int t = 0; t < s->n_tables; t++) {
        VLP_TRY(write_table(s, t, &b->tables[t], b->text.data));
        b->tables[t].rows = 0;
    }
    vlp_buf_clear(&b->text);
    return VLP_OK;
}

/* The first failure is told from then on. */
static vlp_status remember(vlp_stream *s, vlp_status status) {
    s->status = status;
    if (status != VLP_OK) snprintf(s->error, sizeof s->error, "%s", vlp_error());
    return status;
}

static void *work(void *user) {
    vlp_stream *s = user;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        if (!s->busy) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        block *b = &s->blocks[!s->filling];
        pthread_mutex_unlock(&s->lock);
        vlp_status status = write_block(s, b);
        pthread_mutex_lock(&s->lock);
        remember(s, status);
        s->busy = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Waits until the thread rests. */
static vlp_status rest(vlp_stream *s) {
    pthread_mutex_lock(&s->lock);
    while (s->busy) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return s->status == VLP_OK ? VLP_OK : VLP_FAIL(s->status, "%s", s->error);
}

static vlp_status hand_over(vlp_stream *s) {
    VLP_TRY(rest(s));
    if (!s->started) return vlp_stream_wait(s);
    pthread_mutex_lock(&s->lock);
    s->filling = !s->filling;
    s->busy = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return VLP_OK;
}

static vlp_status prepare(vlp_stream *s, int table, int rows, vlp_stmt **out) {
    vlp_buf sql = {0};
    vlp_status status = vlp_buf_puts(&sql, s->tables[table].head);
    for (int i = 0; i < rows * s->tables[table].columns && status == VLP_OK; i++) {
        bool first = i % s->tables[table].columns == 0;
        status = vlp_buf_puts(&sql, !first ? ",?" : i ? "),(?" : "(?");
    }
    if (status == VLP_OK) status = vlp_buf_puts(&sql, ")");
    if (status == VLP_OK) status = vlp_stmt_new(out, s->db, sql.data);
    vlp_buf_free(&sql);
    return status;
}

static vlp_status open_table(vlp_stream *s, int table) {
    int columns = s->tables[table].columns;
    VLP_ASSERT(columns <= COLUMNS, "%d columns", columns);
    for (int b = 0; b < 2; b++) {
        vlp_value **values = &s->blocks[b].tables[table].values;
        *values = vlp_alloc((size_t)(ROWS * columns) * sizeof **values);
        if (!*values) return VLP_ERR_MEMORY;
    }
    VLP_TRY(prepare(s, table, 1, &s->one[table]));
    return prepare(s, table, TOGETHER, &s->many[table]);
}

vlp_status vlp_stream_new(vlp_stream **out, vlp_db *db, const vlp_stream_table *tables, int n) {
    VLP_ASSERT(n <= TABLES, "%d tables", n);
    *out = NULL;
    vlp_stream *s = vlp_alloc_zero(1, sizeof *s);
    if (!s) return VLP_ERR_MEMORY;
    s->db = db;
    s->tables = tables;
    s->n_tables = n;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    vlp_status status = VLP_OK;
    for (int t = 0; t < n; t++) VLP_TRY_DONE(open_table(s, t));
    s->started = pthread_create(&s->thread, NULL, work, s) == 0; /* else the caller writes */
done:
    if (status != VLP_OK)
        vlp_stream_free(s);
    else
        *out = s;
    return status;
}

static vlp_status copy_value(vlp_buf *text, vlp_value *to, const vlp_value *from) {
    *to = *from;
    if (from->kind < VLP_VALUE_TEXT) return VLP_OK;
    to->bytes = (const void *)(uintptr_t)text->len;
    return vlp_buf_append(text, from->bytes, (size_t)from->number);
}

vlp_status vlp_stream_row(vlp_stream *s, int table, const vlp_value *values) {
    /* here, not when it fills: after a failure a full one stays full */
    if (s->blocks[s->filling].tables[table].rows == ROWS) VLP_TRY(hand_over(s));
    block *b = &s->blocks[s->filling];
    table_block *t = &b->tables[table];
    int columns = s->tables[table].columns;
    for (int c = 0; c < columns; c++)
        VLP_TRY(copy_value(&b->text, &t->values[t->rows * columns + c], &values[c]));
    t->rows++;
    return VLP_OK;
}

bool vlp_stream_amend(vlp_stream *s, int table, int column, int64_t number) {
    table_block *t = &s->blocks[s->filling].tables[table];
    if (t->rows == 0) return false;
    t->values[(t->rows - 1) * s->tables[table].columns + column] = vlp_value_int(number);
    return true;
}

vlp_status vlp_stream_wait(vlp_stream *s) {
    VLP_TRY(rest(s));
    return remember(s, write_block(s, &s->blocks[s->filling]));
}

void vlp_stream_free(vlp_stream *s) {
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    while (s->busy) pthread_cond_wait(&s->changed, &s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->started) pthread_join(s->thread, NULL);
    for (int t = 0; t < s->n_tables; t++) {
        vlp_stmt_free(s->one[t]);
        vlp_stmt_free(s->many[t]);
    }
    for (int b = 0; b < 2; b++) {
        for (int t = 0; t < s->n_tables; t++) vlp_free(s->blocks[b].tables[t].values);
        vlp_buf_free(&s->blocks[b].text);
    }
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    vlp_free(s);
}
