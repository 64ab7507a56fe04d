/* oneDNN behind plain functions, where the build found it. */
#ifndef VLP_CORE_PRODUCT_ONEDNN_H
#define VLP_CORE_PRODUCT_ONEDNN_H

#include "core/product.h"

/* "2.6.3", NULL = not built in */
const char *vlp_onednn_version(void);

/* false, having done nothing that matters, where it lacks this kind of product or memory. With a
 * bfloat16 pre, C is computed from pre as rounded. */
bool vlp_product_onednn(const vlp_product *p, bool parallel);

#endif
