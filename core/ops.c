#include "core/ops.h"

#include "core/op_table.h"

const vlp_op *const vlp_ops[] = {
#define VLP_OP(name) &vlp_op_##name,
    VLP_OP_LIST(VLP_OP)
#undef VLP_OP
};

const int vlp_ops_count = (int)VLP_COUNT(vlp_ops);
