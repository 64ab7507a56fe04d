/* Decoded training pictures in one file, memory-mapped: later epochs and later runs decode nothing.
 *
 * A picture is kept as training would see it after decoding (8-bit RGB, shrunk to the short side
 * that random crops are taken from), under its content hash: a file that changes has another hash
 * and is decoded again. The file is written beside its name and renamed when whole. */
#ifndef VLP_DATASETS_PIXEL_FILE_H
#define VLP_DATASETS_PIXEL_FILE_H

#include "datasets/reader.h"
#include "datasets/rows.h"

typedef struct vlp_pixel_file vlp_pixel_file;

typedef struct {
    const char *path;
    vlp_decode_options decode;
    int short_side;
    int threads;       /* 0 = all */
    int64_t max_bytes; /* pictures beyond it are left to be decoded each time; 0 = no bound */
    bool (*progress)(int64_t done, int64_t total, void *user);
    void *user;
} vlp_pixel_file_options;

/* Maps the file; pictures of the rows (of images) that it lacks are added first: what it has is
 * copied, not decoded again. Another program's file is refused. Pictures that do not decode are
 * left out. A full disk or a stop leaves the old file as it was. */
vlp_status vlp_pixel_file_open(vlp_pixel_file **out, const vlp_index *index, const vlp_rows *rows,
                               const vlp_pixel_file_options *options);
void vlp_pixel_file_free(vlp_pixel_file *file); /* NULL is legal */

/* A borrowed, read-only picture; false when the file has none of that hash. Any thread. */
bool vlp_pixel_file_get(const vlp_pixel_file *file, vlp_hash hash, vlp_image *out);
int64_t vlp_pixel_file_count(const vlp_pixel_file *file);

#endif
