/* Gradient cases of the embeddings, positions, masks and patches. */
#ifndef VLP_TESTS_GRAD_CASES_EMBEDDING_H
#define VLP_TESTS_GRAD_CASES_EMBEDDING_H

#include "tests/gradcheck.h"

static const int32_t embedding_ids[] = {2, 0, 2, 4, 1, 2};

static vlp_tensor *embedding(vlp_tape *tape, vlp_tensor **x) {
    return vlp_embedding(tape, x[0], embedding_ids, 2, (int64_t[]){2, 3}, -1);
}

static vlp_tensor *embedding_no_ids(vlp_tape *tape, vlp_tensor **x) {
    return vlp_embedding(tape, x[0], NULL, 1, (int64_t[]){0}, -1);
}

/* The table is also the output layer. */
static vlp_tensor *embedding_tied(vlp_tape *tape, vlp_tensor **x) {
    vlp_tensor *rows = vlp_embedding(tape, x[0], embedding_ids, 1, (int64_t[]){6}, -1);
    return vlp_linear(tape, rows, x[0], NULL, VLP_ACT_NONE);
}

static vlp_tensor *embedding_positions(vlp_tape *tape, vlp_tensor **x) {
    return vlp_add_positions(tape, x[0], x[1], 0);
}

static vlp_tensor *embedding_positions_offset(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_add_positions(tape, x[0], x[1], 2), x[0]);
}

static vlp_tensor *embedding_prepend(vlp_tape *tape, vlp_tensor **x) {
    return vlp_prepend_tokens(tape, x[0], x[1]);
}

static vlp_tensor *embedding_prepend_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_prepend_tokens(tape, x[0], vlp_prepend_tokens(tape, x[0], x[1]));
}

static const uint8_t embedding_mask[] = {0, 1, 1, 0, 0, 1};
static const uint8_t embedding_none[6], embedding_all[] = {1, 1, 1, 1, 1, 1};

static vlp_tensor *embedding_mask_rows(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mask_rows(tape, x[0], x[1], embedding_mask);
}

static vlp_tensor *embedding_mask_none(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mask_rows(tape, x[0], x[1], embedding_none);
}

static vlp_tensor *embedding_mask_all(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mask_rows(tape, x[0], x[1], embedding_all);
}

static vlp_tensor *embedding_mask_reused(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_mask_rows(tape, x[0], x[1], embedding_mask), x[0]);
}

static vlp_tensor *embedding_patches(vlp_tape *tape, vlp_tensor **x) {
    return vlp_patch_embed(tape, x[0], x[1], x[2], 2);
}

static vlp_tensor *embedding_patches_no_bias(vlp_tape *tape, vlp_tensor **x) {
    return vlp_patch_embed(tape, x[0], x[1], NULL, 3);
}

/* The same pixels by two projections: the second adds to what the first wrote. */
static vlp_tensor *embedding_patches_twice(vlp_tape *tape, vlp_tensor **x) {
    return vlp_mul(tape, vlp_patch_embed(tape, x[0], x[1], NULL, 2),
                   vlp_patch_embed(tape, x[0], x[2], NULL, 2));
}

static const gradcheck_case grad_cases_embedding[] = {
    {"embedding, repeated ids", "embedding", 1, {{2, {5, 3}}}, embedding},
    {"embedding, wide", "embedding", 1, {{2, {5, 37}}}, embedding},
    {"embedding, no ids", "embedding", 1, {{2, {5, 3}}}, embedding_no_ids},
    {"embedding, tied", "embedding", 1, {{2, {5, 3}}}, embedding_tied},
    {"positions", "add_positions", 2, {{3, {3, 5, 7}}, {2, {5, 7}}}, embedding_positions},
    {"positions, offset",
     "add_positions",
     2,
     {{3, {2, 3, 5}}, {2, {7, 5}}},
     embedding_positions_offset},
    {"prepend one", "prepend_tokens", 2, {{2, {1, 5}}, {3, {3, 2, 5}}}, embedding_prepend},
    {"prepend two", "prepend_tokens", 2, {{2, {2, 37}}, {3, {2, 3, 37}}}, embedding_prepend},
    {"prepend to nothing", "prepend_tokens", 2, {{2, {2, 5}}, {3, {2, 0, 5}}}, embedding_prepend},
    {"prepend twice", "prepend_tokens", 2, {{2, {1, 5}}, {3, {3, 2, 5}}}, embedding_prepend_twice},
    {"mask rows", "mask_rows", 2, {{3, {2, 3, 5}}, {1, {5}}}, embedding_mask_rows},
    {"mask none", "mask_rows", 2, {{2, {6, 5}}, {1, {5}}}, embedding_mask_none},
    {"mask all", "mask_rows", 2, {{2, {6, 37}}, {1, {37}}}, embedding_mask_all},
    {"mask, x used twice", "mask_rows", 2, {{2, {6, 5}}, {1, {5}}}, embedding_mask_reused},
    {"patches", "patch_embed", 3, {{4, {2, 3, 4, 6}}, {2, {5, 12}}, {1, {5}}}, embedding_patches},
    {"patches, no bias",
     "patch_embed",
     2,
     {{4, {1, 1, 6, 9}}, {2, {2, 9}}},
     embedding_patches_no_bias},
    {"patches, 4-dimensional w",
     "patch_embed",
     3,
     {{4, {1, 2, 2, 4}}, {4, {3, 2, 2, 2}}, {1, {3}}},
     embedding_patches},
    {"patches, pixels used twice",
     "patch_embed",
     3,
     {{4, {1, 1, 4, 4}}, {2, {3, 4}}, {2, {3, 4}}},
     embedding_patches_twice},
};

#endif
