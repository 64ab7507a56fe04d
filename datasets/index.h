/* The index: one SQLite file that names every image, caption and skipped row of a corpus. Pixels
 * stay where they are; the index holds locations, content hashes, splits and text.
 *
 *     vlp_index *index;
 *     VLP_TRY(vlp_index_open(&index, "pairs.db", VLP_DB_WRITE));
 *     VLP_TRY(vlp_index_import(index, "photos/", &options, &report));    datasets/import.h
 *     VLP_TRY(vlp_index_verify(index, &verify_options, &verified));      datasets/verify.h
 *     ... vlp_loader_open(...)                                           datasets/loader.h
 *     vlp_index_free(index);
 *
 * Tables: sources, images, captions (with full text in captions_fts), questions with
 * answers, skipped, embeddings. */
#ifndef VLP_DATASETS_INDEX_H
#define VLP_DATASETS_INDEX_H

#include "core/hash.h"
#include "core/json.h"
#include "datasets/db.h"

typedef struct vlp_index vlp_index;

/* What is known of an image's pixels. Training uses good images only. */
typedef enum { VLP_IMAGE_UNVERIFIED, VLP_IMAGE_GOOD, VLP_IMAGE_BAD } vlp_image_state;

/* How an image lies in its file. Encoded (JPEG, PNG, ...): the whole file, or `length` bytes at
 * `offset` of a tar. Grey: `length` raw bytes at `offset`. Zipped: a compressed entry of a zip. */
typedef enum { VLP_STORED_ENCODED, VLP_STORED_GREY, VLP_STORED_ZIPPED } vlp_stored;

/* Opens an index; VLP_DB_WRITE creates it and brings an older schema up to date. A file of another
 * program or of a newer version is refused. */
vlp_status vlp_index_open(vlp_index **out, const char *path, vlp_db_mode mode);
void vlp_index_free(vlp_index *index);
/* Whether nothing is in it; and removing a closed index with what SQLite keeps beside it. */
bool vlp_index_is_empty(const vlp_index *index);
void vlp_index_remove(const char *path);
const char *vlp_index_path(const vlp_index *index);
vlp_db *vlp_index_db(const vlp_index *index); /* borrowed, for the folder's other files */

/* Counts for people: a JSON object (the caller frees it) with "images", "captions", "texts",
 * "sources" [{name,format,path,images,captions}], "splits" {name:
 * {images,captions,unverified,bad}}, "duplicates", "duplicates_across_splits", "caption_length"
 * {min,mean,median,p99,max} in characters, "image_size" {min,median,max of the short side},
 * "scripts" {Latin: captions, ...}, "skipped" and "skipped_by_reason", "repeated_captions"
 * [{caption, images}], "near_duplicates" {images, pairs, across_splits, examples}; lengths and
 * sizes have a "histogram" too. Memory: 16 bytes a decoded image for the near duplicates. */
vlp_status vlp_index_stats(const vlp_index *index, vlp_json **out);

/* Every skipped row or file and every image found bad, in order; stops when `row` returns false. */
typedef bool (*vlp_skipped_fn)(const char *path, int64_t row, const char *reason,
                               const char *detail, void *user);
vlp_status vlp_index_skipped(const vlp_index *index, vlp_skipped_fn row, void *user);

/* Content hashes as stored: 16 bytes, most significant first, so that memcmp orders them. */
void vlp_hash_store(vlp_hash hash, uint8_t out[16]);
vlp_hash vlp_hash_stored(const void *blob, int64_t len); /* zero for a blob of another length */

#endif
