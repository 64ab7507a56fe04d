#include "core/gzip.h"

#define ZLIB_CONST
#include <limits.h>
#include <zlib.h>

static vlp_status inflate_all(z_stream *z, size_t max_bytes, vlp_buf *out) {
    size_t start = out->len;
    for (int result = Z_OK; result != Z_STREAM_END;) {
        VLP_TRY(vlp_buf_reserve(out, 1 << 16));
        size_t room = out->cap - out->len - 1;
        z->next_out = (Bytef *)(out->data + out->len);
        z->avail_out = (uInt)(room > UINT_MAX ? UINT_MAX : room);
        uInt before = z->avail_out;
        result = inflate(z, Z_NO_FLUSH);
        out->len += before - z->avail_out;
        out->data[out->len] = '\0';
        if (result != Z_OK && result != Z_STREAM_END)
            return VLP_FAIL(VLP_ERR_FORMAT, "not a whole gzip file (%s)",
                            z->msg ? z->msg : "it ends too early");
        if (out->len - start > max_bytes)
            return VLP_FAIL(VLP_ERR_LIMIT, "more than %zu bytes when unpacked", max_bytes);
    }
    return z->avail_in == 0
               ? VLP_OK
               : VLP_FAIL(VLP_ERR_FORMAT, "%u bytes follow the end of the gzip file", z->avail_in);
}

vlp_status vlp_gunzip(const void *data, size_t len, size_t max_bytes, vlp_buf *out) {
    if (len > UINT_MAX) return VLP_FAIL(VLP_ERR_LIMIT, "a gzip file of more than 4 GiB");
    z_stream z = {.next_in = data, .avail_in = (uInt)len};
    if (inflateInit2(&z, 15 + 16) != Z_OK) return VLP_FAIL(VLP_ERR_MEMORY, "out of memory");
    vlp_status status = inflate_all(&z, max_bytes, out);
    inflateEnd(&z);
    return status;
}
