/* What the folders of a collection say about the pictures in them. */
#ifndef VLP_TOOLS_FOLDERS_H
#define VLP_TOOLS_FOLDERS_H

#include "core/memory.h"

#include <stdbool.h>

typedef struct {
    const char *folder;   /* prefix of the path */
    const char *pattern;  /* "flag of %s", NULL = the caption as it is */
    const char *unless;   /* the pattern is not applied to captions with this word */
    const char *category; /* a word for the second caption, NULL = none */
    bool held_out;        /* whether captions of this folder can be told from the picture */
} folder_rule;

/* The first rule whose folder begins `name`; never NULL. */
const folder_rule *folder_rule_find(const folder_rule *rules, size_t count, const char *name);

/* Rewrites a caption by the rule's pattern. */
vlp_status folder_rule_apply(const folder_rule *rule, vlp_buf *caption);

/* Appends "caption, category" into out (cleared), empty when the caption has the word already. */
vlp_status folder_rule_category(const folder_rule *rule, const char *caption, vlp_buf *out);

/* Into out (cleared): "folder|name" of a file with its numbering removed, the key of its series. */
vlp_status folder_series(const char *name, const char *author, vlp_buf *out);

/* Folder part and file name without extension, both into cleared buffers. */
vlp_status folder_parts(const char *name, vlp_buf *folder, vlp_buf *stem);

#endif
