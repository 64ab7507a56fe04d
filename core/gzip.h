/* gzip files (RFC 1952) in memory. */
#ifndef VLP_CORE_GZIP_H
#define VLP_CORE_GZIP_H

#include "core/memory.h"

/* Appends the decompressed bytes to out. More than max_bytes is VLP_ERR_LIMIT, anything that is not
 * one whole gzip file VLP_ERR_FORMAT; errors do not name the file. */
vlp_status vlp_gunzip(const void *data, size_t len, size_t max_bytes, vlp_buf *out);

#endif
