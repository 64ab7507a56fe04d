/* Learned positions of a ViT on another grid of patches than they were learned on: bicubic
 * interpolation, which is a product with a fixed matrix. */
#ifndef VLP_VISION_VIT_POSITIONS_H
#define VLP_VISION_VIT_POSITIONS_H

#include "core/real.h"

#include <stdint.h>

typedef struct {
    int64_t rows, columns;
} vlp_grid;

/* Row i of matrix [prefix + to, prefix + from] holds the weights of position i of the new grid over
 * the old ones; the first `prefix` positions, of class tokens, are kept. Kernel: a = -0.75, four
 * taps an axis, indices clamped to the grid, no smoothing when it shrinks. A new row y lies at (y +
 * 0.5) from.rows / (to.rows + offset) - 0.5; offset is 0 in ALBEF, BLIP and MAE and 0.1 in Hugging
 * Face's ViT. */
void vlp_position_weights(vlp_grid from, vlp_grid to, int64_t prefix, double offset,
                          vlp_real *matrix);

/* The same by open_clip: kernel a = -0.5, widened when the grid shrinks so that it smooths, weights
 * of rows beyond the grid left out and the others made to sum to 1 (antialiased bicubic). */
void vlp_position_weights_smooth(vlp_grid from, vlp_grid to, int64_t prefix, vlp_real *matrix);

/* Positions that are not learned, [prefix + rows columns, width] (He et al., 2022): zeros for the
 * first `prefix`; then the first half of the width is of the column, the second of the row, each
 * sin(at f_k), then cos(at f_k), with f_k = 10000^(-k / (width / 4)). width is a multiple of 4. */
void vlp_position_waves(vlp_grid grid, int64_t prefix, int64_t width, vlp_real *out);

#endif
