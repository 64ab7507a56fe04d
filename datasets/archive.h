/* Archives read where they lie: the members of a tar or zip file with the place of each, so that a
 * picture inside is read later by its offset without unpacking anything.
 *
 * A tar's members and a zip's uncompressed ones lie in the file as they are; a compressed member of
 * a zip is inflated alone. A tar that is compressed as a whole has no places: it is refused with
 * the command that unpacks it. */
#ifndef VLP_DATASETS_ARCHIVE_H
#define VLP_DATASETS_ARCHIVE_H

#include "datasets/index.h"

#include "core/memory.h"

typedef struct {
    const char *name;    /* inside the archive, NUL-terminated */
    int64_t offset;      /* of its bytes in the file, or of its entry (VLP_STORED_ZIPPED) */
    int64_t length;      /* bytes there */
    vlp_stored stored;   /* VLP_STORED_ENCODED or VLP_STORED_ZIPPED */
    const uint8_t *data; /* its content; NULL when it has more than max_bytes */
    size_t len;
    bool plain; /* a file; links and devices have no content */
} vlp_member;

typedef vlp_status (*vlp_member_fn)(const vlp_member *member, void *user);

/* Calls `member` for every entry that is no folder, in order; name and data are borrowed for the
 * call, but data of VLP_STORED_ENCODED members stays until map_done. max_bytes bounds what a
 * compressed member may grow to. A damaged archive is VLP_ERR_FORMAT after the members that could
 * be read. */
vlp_status vlp_archive_each(const char *path, const uint8_t *bytes, size_t len, size_t max_bytes,
                            vlp_member_fn member, void *user);

/* The content of a compressed member from the bytes of its entry, appended to out. */
vlp_status vlp_archive_inflate(const uint8_t *entry, size_t len, size_t max_bytes, vlp_buf *out);

/* Whether the first bytes are those of a tar or zip file. A compressed tar is one that
 * vlp_archive_each refuses. */
bool vlp_is_archive(const char *head, size_t len);

const char *vlp_archive_version(void); /* of libarchive, at run time */

#endif
