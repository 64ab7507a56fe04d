#include "datasets/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>

typedef struct {
    struct archive *raw;
    const char *path;
    const uint8_t *bytes;
    size_t len, max_bytes;
    vlp_buf unpacked, name;
} reader;

static const struct {
    const char *magic;
    size_t len;
    const char *command;
} packed[] = {
    {"\x1f\x8b", 2, "gunzip -k"},
    {"BZh", 3, "bunzip2 -k"},
    {"\xfd"
     "7zXZ",
     5, "unxz -k"},
    {"\x28\xb5\x2f\xfd", 4, "unzstd"},
};

static const char *packed_command(const char *head, size_t len) {
    for (size_t i = 0; i < VLP_COUNT(packed); i++)
        if (len >= packed[i].len && memcmp(head, packed[i].magic, packed[i].len) == 0)
            return packed[i].command;
    return NULL;
}

bool vlp_is_archive(const char *head, size_t len) {
    bool tar = len >= 263 && memcmp(head + 257, "ustar", 5) == 0;
    bool zip = len >= 4 && memcmp(head, "PK\3\4", 4) == 0;
    return tar || zip;
}

static vlp_status archive_error(const reader *r, const char *doing) {
    const char *reason = archive_error_string(r->raw);
    return VLP_FAIL(archive_errno(r->raw) == ENOMEM ? VLP_ERR_MEMORY : VLP_ERR_FORMAT,
                    "%s: damaged archive, cannot %s: %s", r->path, doing,
                    reason ? reason : "no reason given");
}

/* Tar and zip only, zips from front to back: the entry's own header is what a later look needs. */
static vlp_status open_archive(reader *r) {
    r->raw = archive_read_new();
    if (!r->raw) return VLP_FAIL(VLP_ERR_MEMORY, "out of memory for an archive");
    archive_read_support_format_tar(r->raw);
    archive_read_support_format_zip_streamable(r->raw);
    if (archive_read_open_memory(r->raw, r->bytes, r->len) == ARCHIVE_OK) return VLP_OK;
    return archive_error(r, "open it");
}

/* A content that is one piece of the file stays where it is; anything else is copied. */
static vlp_status read_content(reader *r, vlp_member *m, bool *in_place) {
    const uint8_t *start = NULL;
    size_t total = 0;
    bool whole = true;
    vlp_buf_clear(&r->unpacked);
    while (true) {
        const void *piece;
        size_t n;
        la_int64_t at;
        int code = archive_read_data_block(r->raw, &piece, &n, &at);
        if (code == ARCHIVE_EOF) break;
        if (code < ARCHIVE_WARN) return archive_error(r, "read a member");
        const uint8_t *p = piece;
        bool inside = n > 0 && p >= r->bytes && p < r->bytes + r->len;
        if (n > 0 && total == 0) start = p;
        whole = whole && (n == 0 || (inside && p == start + total));
        if (n > 0 && (size_t)at != total) return archive_error(r, "read a member with holes");
        total += n;
        if (total > r->max_bytes) continue; /* counted, not kept */
        if (!inside) VLP_TRY(vlp_buf_append(&r->unpacked, p, n));
    }
    *in_place = total > 0 && whole;
    m->len = total;
    m->data = *in_place ? start : (const uint8_t *)r->unpacked.data;
    if (total == 0) m->data = (const uint8_t *)"";
    if (!*in_place && (total > r->max_bytes || r->unpacked.len != total)) m->data = NULL;
    return VLP_OK;
}

static vlp_status each_entry(reader *r, struct archive_entry *entry, vlp_member_fn member,
                             void *user) {
    mode_t type = archive_entry_filetype(entry);
    const char *name = archive_entry_pathname(entry);
    if (type == AE_IFDIR) return VLP_OK;
    vlp_buf_clear(&r->name);
    VLP_TRY(vlp_buf_puts(&r->name, name ? name : ""));
    bool in_place = false;
    vlp_member m = {.name = r->name.data, .plain = type == AE_IFREG || type == 0};
    m.plain = m.plain && !archive_entry_hardlink(entry) && name;
    int64_t header = archive_read_header_position(r->raw);
    if (m.plain) VLP_TRY(read_content(r, &m, &in_place));
    if (in_place || !m.plain || m.len == 0) {
        m.offset = in_place ? m.data - r->bytes : header;
        m.length = (int64_t)m.len;
        m.stored = VLP_STORED_ENCODED;
    } else {
        m.offset = header;
        m.length = archive_filter_bytes(r->raw, 0) - header;
        m.stored = VLP_STORED_ZIPPED;
    }
    return member(&m, user);
}

/* Cut off between two members, a tar still reads well: only its end mark tells. */
static vlp_status check_end(const reader *r) {
    static const uint8_t zeros[512];
    bool tar = (archive_format(r->raw) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR;
    size_t block = sizeof zeros;
    if (!tar || (r->len >= block && memcmp(r->bytes + r->len - block, zeros, block) == 0))
        return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: damaged archive: no end mark, it is cut off", r->path);
}

static vlp_status each(reader *r, vlp_member_fn member, void *user) {
    VLP_TRY(open_archive(r));
    while (true) {
        struct archive_entry *entry;
        int code = archive_read_next_header(r->raw, &entry);
        if (code == ARCHIVE_EOF) return check_end(r);
        if (code < ARCHIVE_WARN) return archive_error(r, "find the next member");
        VLP_TRY(each_entry(r, entry, member, user));
    }
}

static void close_archive(reader *r) {
    archive_read_free(r->raw);
    vlp_buf_free(&r->unpacked);
    vlp_buf_free(&r->name);
}

vlp_status vlp_archive_each(const char *path, const uint8_t *bytes, size_t len, size_t max_bytes,
                            vlp_member_fn member, void *user) {
    const char *command = packed_command((const char *)bytes, len);
    if (command)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: compressed as a whole, so its pictures cannot be read one by one; "
                        "unpack it first: %s '%s'",
                        path, command, path);
    reader r = {.path = path, .bytes = bytes, .len = len, .max_bytes = max_bytes};
    vlp_status status = each(&r, member, user);
    close_archive(&r);
    return status;
}

typedef struct {
    vlp_buf *out;
    bool found;
} first_only;

/* Stops behind the first member: its neighbours are of no interest. */
static vlp_status take_first(const vlp_member *member, void *user) {
    first_only *first = user;
    if (!member->data) return VLP_FAIL(VLP_ERR_LIMIT, "unpacks to %zu bytes", member->len);
    first->found = true;
    VLP_TRY(vlp_buf_append(first->out, member->data, member->len));
    return VLP_ERR_INTERRUPTED;
}

vlp_status vlp_archive_inflate(const uint8_t *entry, size_t len, size_t max_bytes, vlp_buf *out) {
    reader r = {.path = "member", .bytes = entry, .len = len, .max_bytes = max_bytes};
    first_only first = {.out = out};
    vlp_status status = each(&r, take_first, &first);
    close_archive(&r);
    if (first.found && status == VLP_ERR_INTERRUPTED) return VLP_OK;
    if (status != VLP_OK) return status;
    return VLP_FAIL(VLP_ERR_FORMAT, "is no member of a zip file any more; index it again");
}

const char *vlp_archive_version(void) {
    return archive_version_string();
}
