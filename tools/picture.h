/* The pictures of the corpus on their way from the unpacked packages to the manifests. */
#ifndef VLP_TOOLS_PICTURE_H
#define VLP_TOOLS_PICTURE_H

#include "core/hash.h"
#include "core/memory.h"

#include <stdbool.h>

enum { CORPUS_CAPTIONS = 5 };

typedef struct {
    char *file;                     /* the original, under the folder of unpacked packages */
    char *image;                    /* the shrunken copy that the manifest names */
    char *caption[CORPUS_CAPTIONS]; /* [0] is the caption that evaluation uses */
    int captions;
    const char *source; /* static string */
    char *series;       /* pictures of one series share a split; NULL = none */
    bool eligible;      /* its caption can be told from the picture, so it may be held out */
    bool fixed;         /* its split is decided by its source */
    const char *split;  /* "train", "val", "test", NULL = in no manifest */
    const char *skip;   /* why it is left out, NULL = it is not */

    vlp_hash content;     /* of the decoded pixels and their size */
    uint64_t gradient[2]; /* dHash across and down */
    uint8_t tone[48];     /* [4,4,3] mean colours */
    int group;            /* pictures that must share a split */
} corpus_picture;

typedef struct {
    corpus_picture *item;
    int count, capacity;
} corpus_list;

/* Appends a picture with copied strings; *out is valid until the next call. series may be NULL. */
vlp_status corpus_add(corpus_list *list, const char *file, const char *source, const char *series,
                      corpus_picture **out);

/* Adds a caption unless it is empty, a repetition, or one too many. */
vlp_status corpus_caption(corpus_picture *picture, const char *text);

void corpus_free(corpus_list *list);

/* Calls visit for each regular file (no link) under `folder` whose name ends in `extension`, in
 * byte order of the names. `name` is the path below `folder`. A missing folder is an error. */
typedef vlp_status corpus_visit(const char *folder, const char *name, void *user);
vlp_status corpus_walk(const char *folder, const char *extension, corpus_visit *visit, void *user);

/* The sources: each appends its pictures, `root` is the folder of unpacked packages. */
vlp_status corpus_add_clipart(corpus_list *list, const char *root);
vlp_status corpus_add_stamps(corpus_list *list, const char *root);
vlp_status corpus_add_drawings(corpus_list *list, const char *root);

/* Both vendors' emoji with their final splits: Noto trains, except for the held-out concepts;
 * EmojiOne is `test` throughout ("emojione" for concepts that Noto trains, "emojione-unseen"). */
vlp_status corpus_add_emoji(corpus_list *list, const char *root);

/* Decodes every picture and fills content, gradient, tone, image and skip (too large, broken,
 * blank); writes copies with sides of at most `side` pixels under `folder`, named by content. */
vlp_status corpus_measure(corpus_list *list, const char *folder, int side);

/* Merges exact duplicates, groups series and near-duplicates, and holds out `held_out` drawings
 * each for val and test. */
typedef struct {
    int duplicates, groups, largest_group, candidates, spare;
} corpus_split_counts;
vlp_status corpus_split(corpus_list *list, int held_out, corpus_split_counts *counts);

/* Writes the manifests and class files into `folder`; counts go to `report`. */
vlp_status corpus_write(const corpus_list *list, const char *folder,
                        const corpus_split_counts *counts, vlp_buf *report);

/* Tab-separated group, image and caption, a line each; equal groups share a split. */
vlp_status corpus_write_groups(const corpus_list *list, const char *path);

#endif
