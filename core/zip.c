#include "core/zip.h"

#include "core/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unzip.h>

enum { NAME_BYTES = 512, STORED = 0, ENCRYPTED = 1 };

/* minizip's door to a file, here bytes in memory. */
typedef struct {
    const uint8_t *data;
    size_t len, at;
} stream;

static voidpf stream_open(voidpf opaque, const void *name, int mode) {
    (void)name;
    (void)mode;
    return opaque;
}

static uLong stream_read(voidpf opaque, voidpf handle, void *out, uLong size) {
    (void)opaque;
    stream *s = handle;
    size_t left = s->len - s->at, n = size < left ? size : left;
    memcpy(out, s->data + s->at, n);
    s->at += n;
    return n;
}

static uLong stream_write(voidpf opaque, voidpf handle, const void *data, uLong size) {
    (void)opaque;
    (void)handle;
    (void)data;
    (void)size;
    return 0;
}

static ZPOS64_T stream_tell(voidpf opaque, voidpf handle) {
    (void)opaque;
    return ((const stream *)handle)->at;
}

static long stream_seek(voidpf opaque, voidpf handle, ZPOS64_T offset, int origin) {
    (void)opaque;
    stream *s = handle;
    size_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? s->at
                  : origin == ZLIB_FILEFUNC_SEEK_END ? s->len
                                                     : 0;
    size_t at;
    if (__builtin_add_overflow(base, (size_t)offset, &at) || at > s->len) return -1;
    s->at = at;
    return 0;
}

static int stream_close(voidpf opaque, voidpf handle) {
    (void)opaque;
    (void)handle;
    return 0;
}

static int stream_error(voidpf opaque, voidpf handle) {
    (void)opaque;
    (void)handle;
    return 0;
}

static vlp_status damaged(const char *where) {
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: its zip directory is damaged or incomplete; copy the file again", where);
}

/* Where the member's bytes lie; minizip has read both of its headers then. */
static vlp_status place(unzFile archive, const unz_file_info64 *info, const stream *s,
                        vlp_zip_member *m, const char *where) {
    if (info->compression_method != STORED || info->flag & ENCRYPTED) return VLP_OK;
    if (unzOpenCurrentFile(archive) != UNZ_OK) return damaged(where);
    ZPOS64_T at = unzGetCurrentFileZStreamPos64(archive);
    unzCloseCurrentFile(archive);
    if (info->compressed_size != info->uncompressed_size || at > s->len ||
        info->uncompressed_size > s->len - at)
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: member \"%.96s\" reaches beyond the end of the file",
                        where, m->name);
    m->data = s->data + at;
    m->bytes = (size_t)info->uncompressed_size;
    return VLP_OK;
}

static vlp_status read_member(unzFile archive, const stream *s, vlp_zip_member *m,
                              const char *where) {
    char name[NAME_BYTES];
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(archive, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK ||
        info.size_filename >= sizeof name)
        return damaged(where);
    m->name = vlp_strndup(name, info.size_filename);
    return m->name ? place(archive, &info, s, m, where) : VLP_ERR_MEMORY;
}

static int compare(const void *a, const void *b) {
    return strcmp(((const vlp_zip_member *)a)->name, ((const vlp_zip_member *)b)->name);
}

static vlp_status read_all(vlp_zip *zip, unzFile archive, const stream *s, const char *where) {
    enum { SMALLEST_ENTRY = 46 };
    unz_global_info64 info;
    if (unzGetGlobalInfo64(archive, &info) != UNZ_OK || info.number_entry > s->len / SMALLEST_ENTRY)
        return damaged(where);
    zip->members = vlp_alloc_zero((size_t)info.number_entry, sizeof *zip->members);
    if (!zip->members) return VLP_ERR_MEMORY;
    for (int code = unzGoToFirstFile(archive); zip->count < info.number_entry;
         code = unzGoToNextFile(archive)) {
        if (code != UNZ_OK) return damaged(where);
        VLP_TRY(read_member(archive, s, &zip->members[zip->count++], where));
    }
    qsort(zip->members, zip->count, sizeof *zip->members, compare);
    for (size_t i = 1; i < zip->count; i++)
        if (compare(&zip->members[i - 1], &zip->members[i]) == 0)
            return VLP_FAIL(VLP_ERR_FORMAT, "%s: member \"%.96s\" is there twice", where,
                            zip->members[i].name);
    return VLP_OK;
}

vlp_status vlp_zip_open(vlp_zip *zip, const uint8_t *data, size_t len, const char *where) {
    *zip = (vlp_zip){0};
    stream s = {data, len, 0};
    zlib_filefunc64_def door = {.zopen64_file = stream_open,
                                .zread_file = stream_read,
                                .zwrite_file = stream_write,
                                .ztell64_file = stream_tell,
                                .zseek64_file = stream_seek,
                                .zclose_file = stream_close,
                                .zerror_file = stream_error,
                                .opaque = &s};
    unzFile archive = unzOpen2_64(where, &door);
    if (!archive) return damaged(where);
    vlp_status status = read_all(zip, archive, &s, where);
    unzClose(archive);
    if (status != VLP_OK) vlp_zip_close(zip);
    return status;
}

void vlp_zip_close(vlp_zip *zip) {
    for (size_t i = 0; i < zip->count; i++) vlp_free(zip->members[i].name);
    vlp_free(zip->members);
    *zip = (vlp_zip){0};
}

const vlp_zip_member *vlp_zip_find(const vlp_zip *zip, const char *name) {
    vlp_zip_member key = {.name = (char *)(uintptr_t)name};
    return zip->count ? bsearch(&key, zip->members, zip->count, sizeof key, compare) : NULL;
}
