#include "datasets/pixel_file.h"

#include "core/file.h"
#include "core/threads.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* header | pictures, one after another | entries, ascending by hash */
typedef struct {
    char magic[8];
    vlp_hash settings; /* how the pictures were decoded */
    int64_t count, table;
} file_header;

typedef struct {
    vlp_hash hash;
    int64_t at;
    int32_t width, height;
} entry;

struct vlp_pixel_file {
    vlp_map map;
    const entry *entries;
    int64_t count;
};

static const char magic[8] = "vlppix1";
enum { CHUNK = 64, MAX_THREADS = 256 };

static int compare(vlp_hash a, vlp_hash b) {
    if (a.high != b.high) return a.high < b.high ? -1 : 1;
    return (a.low > b.low) - (a.low < b.low);
}

static int by_hash(const void *a, const void *b) {
    return compare(((const entry *)a)->hash, ((const entry *)b)->hash);
}

static vlp_hash settings_of(const vlp_pixel_file_options *o) {
    int64_t all[] = {o->short_side, o->decode.max_pixels, o->decode.min_side, o->decode.exif_rotate,
                     o->decode.background};
    return vlp_hash_bytes(all, sizeof all);
}

static bool entry_fits(const entry *e, int64_t table) {
    return e->width > 0 && e->height > 0 && e->at >= (int64_t)sizeof(file_header) &&
           e->at <= table && (int64_t)e->width * e->height * 3 <= table - e->at;
}

/* Takes the mapped file when every part of it lies inside. */
static vlp_status take(vlp_pixel_file *f, const char *path, vlp_hash settings, bool *fits) {
    file_header header;
    *fits = false;
    if (f->map.len == 0) return VLP_OK;
    if (f->map.len < sizeof header || memcmp(f->map.data, magic, sizeof magic) != 0)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: not a picture cache; name another file", path);
    memcpy(&header, f->map.data, sizeof header);
    int64_t left = (int64_t)f->map.len - header.table;
    if (header.table < (int64_t)sizeof header || header.table % 8 != 0 || left < 0 ||
        header.count < 0 || header.count > left / (int64_t)sizeof(entry) ||
        compare(header.settings, settings) != 0)
        return VLP_OK; /* made for other settings, or damaged: made anew */
    f->entries = (const entry *)(const void *)(f->map.data + header.table);
    f->count = header.count;
    for (int64_t i = 0; i < f->count; i++)
        if (!entry_fits(&f->entries[i], header.table)) {
            f->count = 0;
            return VLP_OK;
        }
    *fits = true;
    return VLP_OK;
}

static const entry *find(const vlp_pixel_file *f, vlp_hash hash) {
    entry key = {.hash = hash};
    return f->count ? bsearch(&key, f->entries, (size_t)f->count, sizeof key, by_hash) : NULL;
}

bool vlp_pixel_file_get(const vlp_pixel_file *f, vlp_hash hash, vlp_image *out) {
    const entry *e = f ? find(f, hash) : NULL;
    if (!e) return false;
    *out = (vlp_image){.width = e->width,
                       .height = e->height,
                       .pixels = (uint8_t *)(uintptr_t)(f->map.data + e->at)};
    return true;
}

int64_t vlp_pixel_file_count(const vlp_pixel_file *f) {
    return f ? f->count : 0;
}

/* ---- building -------------------------------------------------------------------------------- */

typedef struct {
    vlp_hash hash;
    vlp_image image; /* own memory, or borrowed from the old file */
    bool borrowed, ready;
} slot;

typedef struct {
    const vlp_pixel_file_options *options;
    const vlp_pixel_file *old;
    vlp_writer writer;
    vlp_reader *readers[MAX_THREADS];
    int threads;
    slot slots[CHUNK];
    entry *entries;
    int64_t count, at;
} builder;

static void prepare(builder *b, slot *s, int64_t id, vlp_reader *reader) {
    vlp_located located;
    s->ready = false;
    if (s->borrowed) s->image = (vlp_image){0};
    s->borrowed = false;
    if (vlp_reader_locate(reader, id, &located) != VLP_OK) return;
    if (located.stored == VLP_STORED_GREY) return; /* as cheap to read where it lies */
    s->hash = located.hash;
    vlp_image kept;
    if (vlp_pixel_file_get(b->old, located.hash, &kept)) {
        vlp_image_free(&s->image);
        s->image = kept;
        s->borrowed = s->ready = true;
        return;
    }
    s->ready = vlp_reader_pixels(reader, &located, &b->options->decode, b->options->short_side,
                                 &s->image) == VLP_OK;
}

static vlp_status append(builder *b, const slot *s) {
    int64_t bytes = (int64_t)s->image.width * s->image.height * 3;
    bool twin = b->count > 0 && compare(b->entries[b->count - 1].hash, s->hash) == 0;
    bool room = !b->options->max_bytes || b->at + bytes <= b->options->max_bytes;
    if (!s->ready || twin || !room) return VLP_OK;
    VLP_TRY(vlp_writer_write(&b->writer, s->image.pixels, (size_t)bytes));
    b->entries[b->count++] = (entry){s->hash, b->at, s->image.width, s->image.height};
    b->at += bytes;
    return VLP_OK;
}

static vlp_status build_rows(builder *b, const vlp_rows *rows) {
    for (int64_t first = 0; first < rows->count; first += CHUNK) {
        int n = (int)(rows->count - first < CHUNK ? rows->count - first : CHUNK);
#pragma omp parallel for schedule(dynamic) num_threads(b->threads)
        for (int i = 0; i < n; i++)
            prepare(b, &b->slots[i], rows->ids[first + i], b->readers[omp_get_thread_num()]);
        for (int i = 0; i < n; i++) VLP_TRY(append(b, &b->slots[i]));
        const vlp_pixel_file_options *o = b->options;
        if (o->progress && !o->progress(first + n, rows->count, o->user))
            return VLP_FAIL(VLP_ERR_INTERRUPTED, "%s: interrupted; run again to make it", o->path);
    }
    return VLP_OK;
}

static vlp_status write_all(builder *b, const vlp_rows *rows) {
    file_header header = {.settings = settings_of(b->options)};
    memcpy(header.magic, magic, sizeof magic);
    VLP_TRY(vlp_writer_write(&b->writer, &header, sizeof header));
    b->at = sizeof header;
    VLP_TRY(build_rows(b, rows));
    static const char zeros[8];
    size_t padding = (size_t)((8 - b->at % 8) % 8);
    VLP_TRY(vlp_writer_write(&b->writer, zeros, padding));
    qsort(b->entries, (size_t)b->count, sizeof *b->entries, by_hash);
    VLP_TRY(vlp_writer_write(&b->writer, b->entries, (size_t)b->count * sizeof *b->entries));
    header.count = b->count;
    header.table = b->at + (int64_t)padding;
    return vlp_writer_rewrite(&b->writer, 0, &header, sizeof header);
}

static vlp_status build(const vlp_index *index, const vlp_rows *rows, const vlp_pixel_file *old,
                        const vlp_pixel_file_options *options) {
    builder *b = vlp_alloc_zero(1, sizeof *b);
    if (!b) return VLP_ERR_MEMORY;
    b->options = options;
    b->old = old;
    b->threads = options->threads > 0 ? options->threads : vlp_threads_get();
    if (b->threads > MAX_THREADS) b->threads = MAX_THREADS;
    vlp_status status = VLP_OK;
    b->entries = vlp_alloc((size_t)(rows->count + 1) * sizeof *b->entries);
    if (!b->entries) status = VLP_ERR_MEMORY;
    for (int i = 0; i < b->threads && status == VLP_OK; i++)
        status = vlp_reader_open(&b->readers[i], vlp_index_path(index));
    if (status == VLP_OK) status = vlp_writer_open(&b->writer, options->path);
    if (status == VLP_OK) {
        status = write_all(b, rows);
        if (status == VLP_OK)
            status = vlp_writer_commit(&b->writer);
        else
            vlp_writer_abandon(&b->writer);
    }
    for (int i = 0; i < b->threads; i++) vlp_reader_free(b->readers[i]);
    for (int i = 0; i < CHUNK; i++)
        if (!b->slots[i].borrowed) vlp_image_free(&b->slots[i].image);
    vlp_free(b->entries);
    vlp_free(b);
    return status;
}

/* Whether a picture of the rows is missing: then the file is made anew from the old one. */
static vlp_status lacks_any(const vlp_pixel_file *f, const vlp_index *index, const vlp_rows *rows,
                            bool *lacks) {
    vlp_reader *reader;
    VLP_TRY(vlp_reader_open(&reader, vlp_index_path(index)));
    vlp_status status = VLP_OK;
    *lacks = false;
    for (int64_t i = 0; i < rows->count && !*lacks && status == VLP_OK; i++) {
        vlp_located located;
        status = vlp_reader_locate(reader, rows->ids[i], &located);
        if (status == VLP_OK) *lacks = located.stored != VLP_STORED_GREY && !find(f, located.hash);
    }
    vlp_reader_free(reader);
    return status;
}

static vlp_status map_file(vlp_pixel_file *f, const vlp_pixel_file_options *o, bool *fits) {
    *fits = false;
    if (!vlp_path_exists(o->path)) return VLP_OK;
    VLP_TRY(vlp_map_open(&f->map, o->path));
    return take(f, o->path, settings_of(o), fits);
}

vlp_status vlp_pixel_file_open(vlp_pixel_file **out, const vlp_index *index, const vlp_rows *rows,
                               const vlp_pixel_file_options *options) {
    *out = NULL;
    vlp_pixel_file *f = vlp_alloc_zero(1, sizeof *f);
    if (!f) return VLP_ERR_MEMORY;
    bool fits, lacks = true, bounded = options->max_bytes > 0;
    vlp_status status = map_file(f, options, &fits);
    if (status == VLP_OK && fits) status = lacks_any(f, index, rows, &lacks);
    if (status == VLP_OK && fits && lacks && bounded && f->count > 0)
        lacks = (int64_t)f->map.len < options->max_bytes / 2; /* full: what is missing stays so */
    if (status == VLP_OK && lacks) {
        status = build(index, rows, fits ? f : NULL, options);
        vlp_map_close(&f->map);
        f->count = 0;
        if (status == VLP_OK) status = map_file(f, options, &fits);
    }
    if (status == VLP_OK)
        *out = f;
    else
        vlp_pixel_file_free(f);
    return status;
}

void vlp_pixel_file_free(vlp_pixel_file *f) {
    if (!f) return;
    vlp_map_close(&f->map);
    vlp_free(f);
}
