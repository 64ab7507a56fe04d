/* The list of ops; each row `name` is `const vlp_op vlp_op_name` in one of core/op_*.c. */
#ifndef VLP_CORE_OP_TABLE_H
#define VLP_CORE_OP_TABLE_H

#include "core/tape.h"

#define VLP_OP_LIST(ROW)                                                                           \
    ROW(linear)                                                                                    \
    ROW(attention)                                                                                 \
    ROW(layer_norm)                                                                                \
    ROW(rms_norm)                                                                                  \
    ROW(l2_normalize)                                                                              \
    ROW(embedding)                                                                                 \
    ROW(add_positions)                                                                             \
    ROW(prepend_tokens)                                                                            \
    ROW(mask_rows)                                                                                 \
    ROW(patch_embed)                                                                               \
    ROW(gather_rows)                                                                               \
    ROW(scatter_rows)                                                                              \
    ROW(mean_rows)                                                                                 \
    ROW(reshape)                                                                                   \
    ROW(transpose)                                                                                 \
    ROW(concat_rows)                                                                               \
    ROW(gather_ranks)                                                                              \
    ROW(add)                                                                                       \
    ROW(mul)                                                                                       \
    ROW(scale)                                                                                     \
    ROW(activation)                                                                                \
    ROW(scale_exp)                                                                                 \
    ROW(divide_by)                                                                                 \
    ROW(to_real)                                                                                   \
    ROW(dropout)                                                                                   \
    ROW(drop_path)                                                                                 \
    ROW(cross_entropy)                                                                             \
    ROW(linear_cross_entropy)                                                                      \
    ROW(soft_cross_entropy)                                                                        \
    ROW(regression_loss)                                                                           \
    ROW(weighted_sum)                                                                              \
    ROW(dot_constant)

#define VLP_OP_DECLARE(name) extern const vlp_op vlp_op_##name;
VLP_OP_LIST(VLP_OP_DECLARE)

#endif
