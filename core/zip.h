/* Members of a zip archive that lie in memory as they are: PyTorch's checkpoints store their
 * records without compression, so nothing is copied. */
#ifndef VLP_CORE_ZIP_H
#define VLP_CORE_ZIP_H

#include "core/status.h"

#include <stdint.h>

typedef struct {
    char *name;
    const uint8_t *data; /* NULL: compressed or encrypted, so not readable in place */
    size_t bytes;
} vlp_zip_member;

typedef struct {
    vlp_zip_member *members; /* sorted by name */
    size_t count;
} vlp_zip;

/* Lists the archive in data [len], which the caller keeps alive; `where` names it in messages.
 * Members that reach beyond the data, and names that occur twice, are VLP_ERR_FORMAT. */
vlp_status vlp_zip_open(vlp_zip *zip, const uint8_t *data, size_t len, const char *where);
void vlp_zip_close(vlp_zip *zip);

const vlp_zip_member *vlp_zip_find(const vlp_zip *zip, const char *name); /* or NULL */

#endif
