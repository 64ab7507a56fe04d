/* Gradient cases of the attention op. */
#ifndef VLP_TESTS_GRAD_CASES_ATTENTION_H
#define VLP_TESTS_GRAD_CASES_ATTENTION_H

#include "core/rng.h"
#include "tests/gradcheck.h"

/* q, k and v side by side in x[0], from column 0 on */
static vlp_attention_args attention_fused_args(vlp_tensor *x, int64_t heads, int64_t width) {
    return (vlp_attention_args){.q = x,
                                .k = x,
                                .v = x,
                                .k_offset = heads * width,
                                .v_offset = 2 * heads * width,
                                .heads = heads,
                                .head_width = width};
}

/* q in x[0], k and v side by side in x[1], x[2] the bias or NULL */
static vlp_attention_args attention_cross_args(vlp_tensor **x, int64_t heads, int64_t width) {
    return (vlp_attention_args){.q = x[0],
                                .k = x[1],
                                .v = x[1],
                                .v_offset = heads * width,
                                .heads = heads,
                                .head_width = width};
}

static vlp_tensor *attention_fused(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 2, 3);
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_fused_single(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 1, 7);
    args.scale = -0.7;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_fused_wider(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 1, 3);
    args.q_offset += 1;
    args.k_offset += 1;
    args.v_offset += 1;
    return vlp_attention(tape, &args);
}

/* The gradient of x[0] already holds the sum's part when attention adds its own. */
static vlp_tensor *attention_fused_added(vlp_tape *tape, vlp_tensor **x) {
    static const vlp_real ones[2 * 3 * 18] = {1, 2, 3, -1};
    vlp_tensor *terms[2] = {vlp_dot_constant(tape, attention_fused(tape, x), ones),
                            vlp_dot_constant(tape, x[0], ones)};
    return vlp_weighted_sum(tape, terms, (const double[]){1, 0.5}, 2);
}

static vlp_tensor *attention_separate(vlp_tape *tape, vlp_tensor **x) {
    return vlp_attention(
        tape, &(vlp_attention_args){
                  .q = x[0], .k = x[1], .v = x[2], .k_offset = 1, .heads = 2, .head_width = 3});
}

static vlp_tensor *attention_cross(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 2, 3);
    return vlp_attention(tape, &args);
}

/* Rows 1 and 3 of the keys are used by no sample. */
static const int32_t attention_index[] = {2, 0, 2, 2};

static vlp_tensor *attention_shared(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 2, 3);
    args.kv_index = attention_index;
    return vlp_attention(tape, &args);
}

/* [4, 3]: row 1 and, by key row, samples that use it have no key at all */
static const uint8_t attention_mask[] = {1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1};
static const int32_t attention_index_masked[] = {1, 0, 1, 3};

static vlp_tensor *attention_masked(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 2, 3);
    args.key_mask = attention_mask;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_masked_by_key_row(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 2, 3);
    args.kv_index = attention_index_masked;
    args.key_mask = attention_mask;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_masked_by_sample(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 2, 3);
    args.kv_index = attention_index;
    args.key_mask = attention_mask;
    args.mask_by_query_batch = true;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_causal(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 2, 3);
    args.causal = true;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_cross_causal(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 1, 3);
    args.causal = true;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_biased(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 2, 3);
    args.bias = x[2];
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_dropout(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 2, 3);
    args.dropout = 0.3;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_everything(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_cross_args(x, 2, 3);
    args.bias = x[2];
    args.kv_index = attention_index;
    args.key_mask = attention_mask;
    args.mask_by_query_batch = true;
    args.causal = true;
    args.dropout = 0.3;
    args.scale = 0.4;
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_same(vlp_tape *tape, vlp_tensor **x) {
    return vlp_attention(
        tape, &(vlp_attention_args){.q = x[0], .k = x[0], .v = x[0], .heads = 2, .head_width = 3});
}

static vlp_tensor *attention_same_shared(vlp_tape *tape, vlp_tensor **x) {
    return vlp_attention(tape, &(vlp_attention_args){.q = x[0],
                                                     .k = x[0],
                                                     .v = x[0],
                                                     .kv_index = attention_index,
                                                     .heads = 2,
                                                     .head_width = 3});
}

static vlp_tensor *attention_overlapping(vlp_tape *tape, vlp_tensor **x) {
    return vlp_attention(tape, &(vlp_attention_args){.q = x[0],
                                                     .k = x[0],
                                                     .v = x[0],
                                                     .k_offset = 1,
                                                     .v_offset = 5,
                                                     .heads = 2,
                                                     .head_width = 3});
}

/* The keys are the values too; columns 12 to 17 belong to nobody. */
static vlp_tensor *attention_keys_are_values(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_fused_args(x[0], 2, 3);
    args.v_offset = args.k_offset;
    return vlp_attention(tape, &args);
}

/* Enough queries for two tiles: q, k and v are projections of a fixed input by x[0]. */
static vlp_attention_args attention_long_args(vlp_tape *tape, vlp_tensor **x) {
    static const int64_t shape[] = {1, 330, 2};
    vlp_real *values = vlp_tape_alloc(tape, 660 * sizeof *values);
    vlp_rng rng = vlp_rng_at(11, VLP_RNG_TEST, 0, 0);
    for (int i = 0; i < 660; i++) values[i] = (vlp_real)vlp_rng_normal(&rng);
    vlp_tensor *input = vlp_tape_input(tape, VLP_REAL, 3, shape, values, false);
    return attention_fused_args(vlp_linear(tape, input, x[0], NULL, VLP_ACT_NONE), 1, 3);
}

static vlp_tensor *attention_long(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_long_args(tape, x);
    return vlp_attention(tape, &args);
}

static vlp_tensor *attention_long_causal(vlp_tape *tape, vlp_tensor **x) {
    vlp_attention_args args = attention_long_args(tape, x);
    args.causal = true;
    return vlp_attention(tape, &args);
}

/* The last 40 keys are masked, and every 7th before them. */
static vlp_tensor *attention_long_masked(vlp_tape *tape, vlp_tensor **x) {
    static uint8_t mask[330];
    for (int i = 0; i < 330; i++) mask[i] = i < 290 && i % 7 != 0;
    vlp_attention_args args = attention_long_args(tape, x);
    args.key_mask = mask;
    args.dropout = 0.3;
    return vlp_attention(tape, &args);
}

static const gradcheck_case grad_cases_attention[] = {
    {"attention, fused q k v", "attention", 1, {{3, {2, 5, 18}}}, attention_fused},
    {"attention, one token", "attention", 1, {{3, {3, 1, 21}}}, attention_fused_single},
    {"attention, 2-dimensional, scale", "attention", 1, {{2, {3, 21}}}, attention_fused_single},
    {"attention, columns of a wider tensor",
     "attention",
     1,
     {{3, {2, 3, 12}}},
     attention_fused_wider},
    {"attention, adds to a gradient", "attention", 1, {{3, {2, 3, 18}}}, attention_fused_added},
    {"attention, separate q k v",
     "attention",
     3,
     {{3, {2, 3, 6}}, {3, {2, 5, 8}}, {3, {2, 5, 6}}},
     attention_separate},
    {"attention, cross", "attention", 2, {{3, {2, 1, 6}}, {3, {2, 5, 12}}}, attention_cross},
    {"attention, keys shared by samples",
     "attention",
     2,
     {{3, {4, 2, 6}}, {3, {4, 3, 12}}},
     attention_shared},
    {"attention, key mask", "attention", 1, {{3, {4, 3, 18}}}, attention_masked},
    {"attention, key mask by key row",
     "attention",
     2,
     {{3, {4, 2, 6}}, {3, {4, 3, 12}}},
     attention_masked_by_key_row},
    {"attention, key mask by sample",
     "attention",
     2,
     {{3, {4, 2, 6}}, {3, {4, 3, 12}}},
     attention_masked_by_sample},
    {"attention, causal", "attention", 1, {{3, {2, 5, 18}}}, attention_causal},
    {"attention, causal, more keys",
     "attention",
     2,
     {{3, {2, 3, 3}}, {3, {2, 5, 6}}},
     attention_cross_causal},
    {"attention, causal, fewer keys",
     "attention",
     2,
     {{3, {2, 5, 3}}, {3, {2, 3, 6}}},
     attention_cross_causal},
    {"attention, bias of sample and head",
     "attention",
     3,
     {{3, {2, 3, 6}}, {3, {2, 5, 12}}, {4, {2, 2, 3, 5}}},
     attention_biased},
    {"attention, bias of head",
     "attention",
     3,
     {{3, {2, 3, 6}}, {3, {2, 5, 12}}, {4, {1, 2, 3, 5}}},
     attention_biased},
    {"attention, bias of sample",
     "attention",
     3,
     {{3, {2, 3, 6}}, {3, {2, 5, 12}}, {4, {2, 1, 3, 5}}},
     attention_biased},
    {"attention, one bias",
     "attention",
     3,
     {{3, {2, 3, 6}}, {3, {2, 5, 12}}, {4, {1, 1, 3, 5}}},
     attention_biased},
    {"attention, dropout", "attention", 1, {{3, {2, 5, 18}}}, attention_dropout},
    {"attention, everything at once",
     "attention",
     3,
     {{3, {4, 2, 6}}, {3, {4, 3, 12}}, {4, {1, 2, 2, 3}}},
     attention_everything},
    {"attention, everything, bias of sample and head",
     "attention",
     3,
     {{3, {4, 2, 6}}, {3, {4, 3, 12}}, {4, {4, 2, 2, 3}}},
     attention_everything},
    {"attention, one tensor is q, k and v", "attention", 1, {{3, {2, 3, 6}}}, attention_same},
    {"attention, one tensor, keys shared", "attention", 1, {{3, {4, 3, 6}}}, attention_same_shared},
    {"attention, ranges that overlap", "attention", 1, {{3, {2, 3, 11}}}, attention_overlapping},
    {"attention, keys are values", "attention", 1, {{3, {2, 3, 18}}}, attention_keys_are_values},
    {"attention, several tiles", "attention", 1, {{2, {9, 2}}}, attention_long},
    {"attention, several tiles, causal", "attention", 1, {{2, {9, 2}}}, attention_long_causal},
    {"attention, several tiles, key mask, dropout",
     "attention",
     1,
     {{2, {9, 2}}},
     attention_long_masked},
};

#endif
