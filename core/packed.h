/* A weight matrix kept in the form that the products read, so that it is packed once for all calls
 * between two changes of its values, not once a call.
 *
 *     vlp_packed *packed;                                    one for each weight
 *     VLP_TRY(vlp_packed_new(&packed));
 *     .b = {w, VLP_REAL, in, .transposed = true, .packed = packed}      y = x w^T
 *     .b = {w, VLP_REAL, in, .packed = packed}                          dx = dy w
 *     vlp_packed_stale(packed);                              w has changed: before the next product
 *     vlp_packed_free(packed);
 *
 * It keeps one form: that of the last direction, made at its first use (vlp_multiply does that by
 * all threads) and again when stale or when it is used in the other direction, with another
 * pointer, shape, type or precision. A training step so packs each weight twice, once for all its
 * forward products and once for backward. Memory: the size of the matrix in the precision of the
 * product, kept until freed, so that a warm step allocates nothing. Products on several threads may
 * share one as long as all use one form; staleness must be marked while none runs. */
#ifndef VLP_CORE_PACKED_H
#define VLP_CORE_PACKED_H

#include "core/status.h"

typedef struct vlp_packed vlp_packed;

vlp_status vlp_packed_new(vlp_packed **out); /* a few bytes: nothing is packed yet */
void vlp_packed_free(vlp_packed *packed);    /* NULL is legal */

/* The values have changed (or may have). Costs nothing; NULL is legal. */
void vlp_packed_stale(vlp_packed *packed);

size_t vlp_packed_bytes(const vlp_packed *packed); /* held at the moment */

#endif
