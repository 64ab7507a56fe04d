/* Where a step's time goes: seconds, operations and bytes by op, filled by a tape that was given
 * one.
 *
 *     vlp_op_profile profile = {0};
 *     vlp_tape_set_profile(tape, &profile);      NULL = off, the default
 *     ... steps ...
 *     for (int i = 0; i < profile.count; i++) use(profile.rows[i]);
 */
#ifndef VLP_CORE_OP_PROFILE_H
#define VLP_CORE_OP_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

enum { VLP_OP_PROFILE_ROWS = 96 };

struct vlp_node;

typedef struct {
    int64_t calls;
    double seconds;
    double flops; /* of products, as vlp_tape_flops counts them */
    double bytes; /* vlp_op_profile_bytes */
} vlp_op_cost;

typedef struct {
    const char *op;
    vlp_op_cost forward, backward;
} vlp_op_row;

typedef struct {
    int count;
    vlp_op_row rows[VLP_OP_PROFILE_ROWS]; /* in order of their first call */
} vlp_op_profile;

/* The row of an op, made when first asked for; ops beyond the last row share it. */
vlp_op_row *vlp_op_profile_row(vlp_op_profile *profile, const char *op);

/* What a pass over a node moves at least, in the types that its tensors have: forward reads the
 * inputs and writes outputs and what is kept; backward reads these (unless the op's gradient_only
 * says that it need not) and the gradients of outputs, and writes those of inputs, which it also
 * reads where it adds to them. A tensor that comes in twice counts once. Asked before the pass. */
double vlp_op_profile_bytes(const struct vlp_node *node, bool backward);

/* Runs pass(node) and adds its cost to the op's row; profile NULL: runs it alone. */
void vlp_op_profile_run(vlp_op_profile *profile, struct vlp_node *node, bool backward, double flops,
                        void (*pass)(struct vlp_node *node));

double vlp_op_profile_clock(void); /* seconds, monotonic */

#endif
