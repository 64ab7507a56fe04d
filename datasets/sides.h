/* Words that say on which side something is: a mirrored picture makes them wrong. */
#ifndef VLP_DATASETS_SIDES_H
#define VLP_DATASETS_SIDES_H

#include "core/memory.h"

#include <stdbool.h>

/* What becomes of a training sample whose caption holds such a word. */
typedef enum {
    VLP_SIDES_KEEP,   /* its picture is not mirrored */
    VLP_SIDES_MIRROR, /* it may be, and left and right then change places in the caption */
    VLP_SIDES_IGNORE, /* it may be, and the caption stays */
} vlp_sides;

/* Whole words in any case: left, right, leftmost, rightmost, leftward(s), rightward(s), and parts
 * before a hyphen ("left-hand"). "Right" may mean correct; it counts too, which costs a mirroring
 * only. */
bool vlp_has_sides(const char *text, size_t len);

/* The text with each left for right and the other way round, case kept; replaces out. */
vlp_status vlp_mirror_sides(vlp_buf *out, const char *text, size_t len);

#endif
