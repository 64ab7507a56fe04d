#include "objectives/ntxent.h"

void vlp_simclr_head_declare(vlp_simclr_head *head, vlp_params *params, int64_t in, int64_t hidden,
                             int64_t out) {
    vlp_dense_declare(&head->fc1, params, "fc1", in, hidden, true, vlp_init_std(in));
    vlp_dense_declare(&head->fc2, params, "fc2", hidden, out, true, vlp_init_std(hidden));
}

vlp_tensor *vlp_simclr_head_forward(vlp_tape *tape, const vlp_simclr_head *head, vlp_tensor *h) {
    return vlp_dense_readout(tape, &head->fc2,
                             vlp_dense_forward(tape, &head->fc1, h, VLP_ACT_RELU));
}

static const double norm_eps = 1e-6; /* of sum x^2 <= 1e-12 */
static const vlp_real hidden_score = (vlp_real)-1e9;

/* Rows first .. first + n. */
static vlp_tensor *rows_of(vlp_tape *tape, vlp_tensor *x, int64_t first, int64_t n) {
    int32_t *rows = vlp_tape_alloc(tape, (size_t)n * sizeof *rows);
    for (int64_t i = 0; rows && !vlp_tape_planning(tape) && i < n; i++)
        rows[i] = (int32_t)(first + i);
    return rows ? vlp_gather_rows(tape, x, rows, n) : NULL;
}

vlp_tensor *vlp_ntxent_loss(vlp_tape *tape, vlp_tensor *z, double temperature,
                            vlp_tensor **logits) {
    if (logits) *logits = NULL;
    if (!z) return NULL;
    int64_t rows = z->shape[0], n = rows / 2;
    int32_t *positive = vlp_tape_alloc(tape, (size_t)rows * sizeof *positive);
    vlp_real *self = vlp_tape_alloc(tape, (size_t)(rows * rows) * sizeof *self);
    if (!positive || !self) return NULL;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < rows * rows; i++)
        self[i] = i / rows == i % rows ? hidden_score : 0;
    for (int64_t i = 0; !vlp_tape_planning(tape) && i < rows; i++)
        positive[i] = (int32_t)((i + n) % rows);
    z = vlp_l2_normalize(tape, z, norm_eps);
    vlp_tensor *s = vlp_scale(tape, vlp_linear(tape, z, z, NULL, VLP_ACT_NONE), 1 / temperature);
    if (logits)
        *logits = vlp_scale(
            tape,
            vlp_linear(tape, rows_of(tape, z, 0, n), rows_of(tape, z, n, n), NULL, VLP_ACT_NONE),
            1 / temperature);
    vlp_tensor *not_self = vlp_tape_input(tape, VLP_REAL, 2, (int64_t[]){rows, rows}, self, false);
    return vlp_cross_entropy(tape, vlp_add(tape, s, not_self), positive, 0);
}
