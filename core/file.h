/* Whole files: read, map, write atomically (temporary beside, fsync, rename), and the folder fsync.
 */
#ifndef VLP_CORE_FILE_H
#define VLP_CORE_FILE_H

#include "core/memory.h"

#include <stdbool.h>

/* Appends the file's bytes to buf. max_bytes bounds what is read (0 = no bound); a larger file is
 * VLP_ERR_LIMIT. A folder or other non-file is VLP_ERR_IO. */
vlp_status vlp_file_read(const char *path, size_t max_bytes, vlp_buf *buf);

/* A read-only memory map. An empty file gives data = NULL, len = 0. */
typedef struct {
    const uint8_t *data;
    size_t len;
    size_t passed; /* what vlp_map_pass has given back */
} vlp_map;
vlp_status vlp_map_open(vlp_map *map, const char *path);
/* Everything before `at` was read: its pages may go, so that a long file does not fill memory. They
 * come back when they are looked at again. */
void vlp_map_pass(vlp_map *map, size_t at);
void vlp_map_close(vlp_map *map);
/* Takes whole pages of bytes that have been read out of this process's memory (a hint); they are
 * read from the file again when touched. Bytes that do not lie in the map are left alone. */
void vlp_map_release(const vlp_map *map, const uint8_t *data, size_t len);

/* Replaces path by data: written to "path.tmp", fsync'ed, renamed, folder fsync'ed. On failure the
 * old file stays and no temporary is left. */
vlp_status vlp_file_write(const char *path, const void *data, size_t len);

/* The same in pieces: open, write through `file` (a stdio stream), then commit or abandon. */
typedef struct {
    void *file; /* FILE *; NULL when closed */
    char *path, *temporary;
} vlp_writer;
vlp_status vlp_writer_open(vlp_writer *writer, const char *path);
vlp_status vlp_writer_write(vlp_writer *writer, const void *data, size_t len);
/* Replaces bytes that were written before; writing goes on at the end. */
vlp_status vlp_writer_rewrite(vlp_writer *writer, int64_t at, const void *data, size_t len);
vlp_status vlp_writer_commit(vlp_writer *writer); /* frees the writer, also on failure */
void vlp_writer_abandon(vlp_writer *writer);      /* removes the temporary; a no-op after commit */

/* Holds path (created) for this process until it is closed or the process ends; VLP_ERR_IO when
 * another process holds it. */
vlp_status vlp_lock_open(int *lock, const char *path);
void vlp_lock_close(int lock); /* -1 is legal */

vlp_status vlp_make_folder(const char *path); /* with parents; existing is fine */
bool vlp_path_exists(const char *path);
bool vlp_is_folder(const char *path);
/* A pipe, device or socket: reading one may never end. */
bool vlp_is_special(const char *path);

/* "a/b" joined into buf (cleared first). An absolute `name` is taken as it is. */
vlp_status vlp_path_join(vlp_buf *buf, const char *folder, const char *name);

#endif
