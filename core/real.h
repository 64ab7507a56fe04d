/* The model's number: float, or double when the same sources are compiled a second time with
 * VLP_REAL_DOUBLE so that gradient checks by central differences are sharp. */
#ifndef VLP_CORE_REAL_H
#define VLP_CORE_REAL_H

#include <float.h>

#ifdef VLP_REAL_DOUBLE
typedef double vlp_real;
#define VLP_REAL_EPSILON DBL_EPSILON
#define VLP_REAL_MAX DBL_MAX
#else
typedef float vlp_real;
#define VLP_REAL_EPSILON FLT_EPSILON
#define VLP_REAL_MAX FLT_MAX
#endif

/* VLP_R(0.5) is the constant in the model's precision. */
#define VLP_R(x) ((vlp_real)(x))

#endif
