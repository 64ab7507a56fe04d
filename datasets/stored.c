#include "datasets/stored.h"

#include "core/file.h"
#include "datasets/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void vlp_container_close(vlp_container *container) {
    if (container->path.len) close(container->fd);
    vlp_buf_free(&container->path);
    vlp_buf_free(&container->packed);
}

static vlp_status open_container(vlp_container *c, const char *path) {
    if (c->path.len && strcmp(c->path.data, path) == 0) return VLP_OK;
    if (c->path.len) close(c->fd);
    vlp_buf_clear(&c->path);
    VLP_TRY(vlp_buf_reserve(&c->path, strlen(path) + 1));
    c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (c->fd < 0) return VLP_FAIL(VLP_ERR_IO, "cannot open: %s", strerror(errno));
    return vlp_buf_puts(&c->path, path);
}

static vlp_status read_range(const vlp_container *c, int64_t offset, int64_t length, vlp_buf *out) {
    vlp_buf_clear(out);
    VLP_TRY(vlp_buf_reserve(out, (size_t)length + 1));
    while ((int64_t)out->len < length) {
        ssize_t n = pread(c->fd, out->data + out->len, (size_t)length - out->len,
                          (off_t)(offset + (int64_t)out->len));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return VLP_FAIL(VLP_ERR_IO, "cannot read: %s", strerror(errno));
        if (n == 0)
            return VLP_FAIL(VLP_ERR_FORMAT, "shorter than when it was indexed; index it again");
        out->len += (size_t)n;
    }
    return VLP_OK;
}

vlp_status vlp_stored_read(vlp_container *container, const char *path, int64_t offset,
                           int64_t length, vlp_stored stored, vlp_buf *out) {
    vlp_buf_clear(out);
    if (length == 0) return vlp_file_read(path, 0, out);
    if (length < 0 || length > VLP_MEMBER_MAX)
        return VLP_FAIL(VLP_ERR_LIMIT, "%lld bytes; the limit is %d", (long long)length,
                        VLP_MEMBER_MAX);
    VLP_TRY(open_container(container, path));
    if (stored != VLP_STORED_ZIPPED) return read_range(container, offset, length, out);
    VLP_TRY(read_range(container, offset, length, &container->packed));
    return vlp_archive_inflate((const uint8_t *)container->packed.data, container->packed.len,
                               VLP_MEMBER_MAX, out);
}
