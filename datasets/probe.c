#include "datasets/probe.h"

#include "vision/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 1 << 20, SAMPLE = 1 << 16 };

static void refuse(vlp_probe *out, vlp_skip_reason reason, const char *detail) {
    out->usable = false;
    out->reason = reason;
    snprintf(out->detail, sizeof out->detail, "%s", detail);
}

/* The signature, or the part of it that is there. */
static bool jpeg_or_png_start(const uint8_t *data, size_t len) {
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    bool jpeg = len >= 2 && data[0] == 0xFF && data[1] == 0xD8;
    return jpeg || memcmp(data, png, len < 8 ? len : 8) == 0;
}

static void look(vlp_probe *out, const uint8_t *data, size_t len, const vlp_probe_limits *limits) {
    vlp_image_header header;
    vlp_status status = vlp_image_probe(&header, data, len);
    if (status == VLP_OK) {
        bool turned = header.orientation >= 5;
        out->width = turned ? header.height : header.width;
        out->height = turned ? header.width : header.height;
        out->usable = true;
        if ((int64_t)header.width * header.height <= limits->max_pixels) return;
        refuse(out, VLP_SKIP_TOO_LARGE, "");
        snprintf(out->detail, sizeof out->detail, "%d x %d pixels; the limit is %lld pixels",
                 header.width, header.height, (long long)limits->max_pixels);
        return;
    }
    bool ours = header.format != VLP_FORMAT_UNKNOWN || jpeg_or_png_start(data, len);
    refuse(out,
           status == VLP_ERR_UNSUPPORTED ? VLP_SKIP_UNSUPPORTED
           : status == VLP_ERR_LIMIT     ? VLP_SKIP_TOO_LARGE
           : ours                        ? VLP_SKIP_TRUNCATED
                                         : VLP_SKIP_NOT_AN_IMAGE,
           vlp_error());
}

/* Empty files and too long ones need no look. */
static bool fits(vlp_probe *out, int64_t size, const vlp_probe_limits *limits) {
    *out = (vlp_probe){0};
    if (size == 0) refuse(out, VLP_SKIP_ZERO_BYTES, "");
    if (size > limits->max_bytes) {
        refuse(out, VLP_SKIP_TOO_LARGE, "");
        snprintf(out->detail, sizeof out->detail, "%lld bytes; the limit is %lld bytes",
                 (long long)size, (long long)limits->max_bytes);
    }
    return size > 0 && size <= limits->max_bytes;
}

/* Reads up to `want` bytes at `at` behind what scratch holds. */
static vlp_status read_at(int fd, int64_t at, size_t want, vlp_buf *scratch, bool *failed) {
    VLP_TRY(vlp_buf_reserve(scratch, want));
    size_t got = 0;
    while (got < want) {
        ssize_t n =
            pread(fd, scratch->data + scratch->len + got, want - got, (off_t)(at + (int64_t)got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) *failed = true;
        if (n <= 0) break;
        got += (size_t)n;
    }
    scratch->len += got;
    return VLP_OK;
}

static vlp_status read_parts(int fd, int64_t size, vlp_buf *scratch, size_t *head, bool *failed) {
    VLP_TRY(read_at(fd, 0, size < HEAD ? (size_t)size : HEAD, scratch, failed));
    *head = scratch->len;
    if (size <= HEAD) return VLP_OK;
    VLP_TRY(read_at(fd, size / 2, SAMPLE, scratch, failed));
    VLP_TRY(read_at(fd, size - SAMPLE, SAMPLE, scratch, failed));
    return vlp_buf_append(scratch, &size, sizeof size);
}

vlp_status vlp_probe_file(vlp_probe *out, const char *path, int64_t size,
                          const vlp_probe_limits *limits, vlp_buf *scratch) {
    vlp_buf_clear(scratch);
    if (!fits(out, size, limits)) return VLP_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        refuse(out, errno == ENOENT ? VLP_SKIP_MISSING : VLP_SKIP_UNREADABLE, strerror(errno));
        return VLP_OK;
    }
    size_t head = 0;
    bool failed = false;
    vlp_status status = read_parts(fd, size, scratch, &head, &failed);
    int error = errno;
    close(fd);
    VLP_TRY(status);
    if (failed || head == 0) {
        refuse(out, VLP_SKIP_UNREADABLE, failed ? strerror(error) : "shrank while it was read");
        return VLP_OK;
    }
    out->hash = vlp_hash_bytes(scratch->data, scratch->len);
    look(out, (const uint8_t *)scratch->data, head, limits);
    return VLP_OK;
}

vlp_status vlp_probe_bytes(vlp_probe *out, const uint8_t *data, size_t len,
                           const vlp_probe_limits *limits, vlp_buf *scratch) {
    if (!fits(out, (int64_t)len, limits)) return VLP_OK;
    size_t head = len < HEAD ? len : HEAD;
    if (len == head) {
        out->hash = vlp_hash_bytes(data, len);
    } else {
        int64_t size = (int64_t)len;
        vlp_buf_clear(scratch);
        VLP_TRY(vlp_buf_append(scratch, data, head));
        VLP_TRY(vlp_buf_append(scratch, data + len / 2,
                               len - len / 2 < SAMPLE ? len - len / 2 : SAMPLE));
        VLP_TRY(vlp_buf_append(scratch, data + len - SAMPLE, SAMPLE));
        VLP_TRY(vlp_buf_append(scratch, &size, sizeof size));
        out->hash = vlp_hash_bytes(scratch->data, scratch->len);
    }
    look(out, data, head, limits);
    return VLP_OK;
}
