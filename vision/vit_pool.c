#include "vision/vit_pool.h"

static void declare_map(vlp_vit_pool *pool, vlp_params *params, const vlp_vit_config *vit) {
    int64_t width = vit->width;
    double std = vlp_init_std(width);
    pool->queries = vlp_params_add(params, "queries", VLP_INIT_TRUNCATED(std), VLP_NO_DECAY, 2,
                                   (int64_t[]){1, width});
    vlp_attend_declare(&pool->attend, params, "attend", width, width, pool->config.heads);
    vlp_norm_declare(&pool->norm, params, "norm", width, vit->eps);
    vlp_dense_declare(&pool->fc1, params, "mlp.fc1", width, vit->mlp_width, true, std);
    vlp_dense_declare(&pool->fc2, params, "mlp.fc2", vit->mlp_width, width, true, std);
}

static void declare_queries(vlp_vit_pool *pool, vlp_params *params, const vlp_vit_config *vit) {
    const vlp_vit_pool_config *c = &pool->config;
    pool->queries = vlp_params_add(params, "queries", VLP_INIT_TRUNCATED(vlp_init_std(c->width)),
                                   VLP_NO_DECAY, 2, (int64_t[]){c->queries, c->width});
    vlp_attend_declare(&pool->attend, params, "attend", c->width, vit->width, c->heads);
    vlp_norm_declare(&pool->query_norm, params, "query_norm", c->width, vit->eps);
    vlp_norm_declare(&pool->token_norm, params, "token_norm", vit->width, vit->eps);
    vlp_norm_declare(&pool->norm, params, "norm", c->width, vit->eps);
}

void vlp_vit_pool_declare(vlp_vit_pool *pool, vlp_params *params, const vlp_vit_pool_config *c,
                          const vlp_vit_config *vit) {
    *pool = (vlp_vit_pool){.config = *c, .prefix = vlp_vit_prefix(vit), .act = vit->act};
    vlp_params_push(params, "pool");
    if (c->kind == VLP_POOL_MAP) declare_map(pool, params, vit);
    if (c->kind == VLP_POOL_QUERIES) declare_queries(pool, params, vit);
    vlp_params_pop(params);
}

int64_t vlp_vit_pool_width(const vlp_vit_pool_config *c, const vlp_vit_config *vit) {
    return c->kind == VLP_POOL_QUERIES ? c->width : vit->width;
}

/* All tokens but the first `prefix`. */
static vlp_tensor *patch_mean(vlp_tape *tape, vlp_tensor *tokens, int64_t prefix) {
    int64_t length = tokens->shape[1], n = tokens->shape[0] * length;
    uint8_t *mask = vlp_tape_alloc(tape, (size_t)n);
    if (!mask) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < n; i++) mask[i] = i % length >= prefix;
    return vlp_mean_rows(tape, tokens, mask);
}

static vlp_tensor *map_head(vlp_tape *tape, const vlp_vit_pool *pool, vlp_tensor *tokens) {
    vlp_tensor *probe = vlp_repeat_rows(tape, pool->queries, tokens->shape[0]);
    vlp_tensor *x = vlp_to_real(tape, vlp_attend_forward(tape, &pool->attend, probe, tokens));
    vlp_tensor *y = vlp_norm_forward(tape, &pool->norm, x);
    y = vlp_dense_forward(tape, &pool->fc1, y, pool->act);
    y = vlp_to_real(tape, vlp_dense_forward(tape, &pool->fc2, y, VLP_ACT_NONE));
    return vlp_first_tokens(tape, vlp_add(tape, x, y));
}

/* Rows 1 .. n - 1 of every sample. */
static vlp_tensor *but_first(vlp_tape *tape, vlp_tensor *x) {
    if (!x) return NULL;
    int64_t batch = x->shape[0], n = x->shape[1], count = batch * (n - 1);
    int32_t *rows = vlp_tape_alloc(tape, (size_t)count * sizeof *rows);
    if (!rows) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < count; i++)
        rows[i] = (int32_t)(i / (n - 1) * n + 1 + i % (n - 1));
    return vlp_reshape(tape, vlp_gather_rows(tape, x, rows, count), 3,
                       (int64_t[]){batch, n - 1, x->shape[2]});
}

static vlp_tensor *queries(vlp_tape *tape, const vlp_vit_pool *pool, vlp_tensor *tokens,
                           vlp_tensor **rest) {
    vlp_tensor *q = vlp_norm_forward(tape, &pool->query_norm, pool->queries);
    vlp_tensor *x =
        vlp_attend_forward(tape, &pool->attend, vlp_repeat_rows(tape, q, tokens->shape[0]),
                           vlp_norm_forward(tape, &pool->token_norm, tokens));
    x = vlp_norm_forward(tape, &pool->norm, vlp_to_real(tape, x));
    if (rest) *rest = but_first(tape, x);
    return vlp_first_tokens(tape, x);
}

vlp_tensor *vlp_vit_pool_forward(vlp_tape *tape, const vlp_vit_pool *pool, vlp_tensor *tokens,
                                 vlp_tensor **rest) {
    if (rest) *rest = NULL;
    if (!tokens) return NULL;
    switch (pool->config.kind) {
    case VLP_POOL_MEAN:
        return patch_mean(tape, tokens, pool->prefix);
    case VLP_POOL_MAP:
        return map_head(tape, pool, tokens);
    case VLP_POOL_QUERIES:
        return queries(tape, pool, tokens, rest);
    default:
        return vlp_first_tokens(tape, tokens);
    }
}
