/* WebP: still pictures, and the first frame of animated ones. */
#include "core/memory.h"
#include "vision/codec.h"
#include "vision/exif.h"

#include <limits.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

static vlp_status bad(const char *what) {
    return VLP_FAIL(VLP_ERR_FORMAT, "is a WebP file that %s", what);
}

/* RIFF's own length tells a file that ends too early. */
static bool cut_off(const uint8_t *data, size_t len) {
    uint64_t riff = (uint64_t)data[4] | (uint64_t)data[5] << 8 | (uint64_t)data[6] << 16 |
                    (uint64_t)data[7] << 24;
    return riff + 8 > len;
}

static int orientation_of(const uint8_t *data, size_t len) {
    WebPData bytes = {data, len};
    WebPDemuxState state;
    WebPDemuxer *demux = WebPDemuxPartial(&bytes, &state);
    WebPChunkIterator chunk;
    int orientation = 1;
    if (demux && WebPDemuxGetChunk(demux, "EXIF", 1, &chunk)) {
        const uint8_t *exif = chunk.chunk.bytes;
        size_t n = chunk.chunk.size, skip = n > 6 && memcmp(exif, "Exif\0\0", 6) == 0 ? 6 : 0;
        orientation = vlp_exif_orientation(exif + skip, n - skip);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    WebPDemuxDelete(demux);
    return orientation;
}

vlp_status vlp_webp_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    WebPBitstreamFeatures features;
    VP8StatusCode code = WebPGetFeatures(data, len, &features);
    if (code == VP8_STATUS_NOT_ENOUGH_DATA) return bad("ends within its header");
    if (code != VP8_STATUS_OK || features.width < 1 || features.height < 1)
        return bad("has a bad header");
    out->format = VLP_FORMAT_WEBP;
    out->width = features.width;
    out->height = features.height;
    out->orientation = orientation_of(data, len);
    return VLP_OK;
}

/* Decodes one bitstream as RGBA into rows of `stride` bytes. */
static vlp_status decode_into(const uint8_t *data, size_t len, uint8_t *rows, int stride,
                              size_t size) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return bad("this libwebp cannot read");
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = rows;
    config.output.u.RGBA.stride = stride;
    config.output.u.RGBA.size = size;
    VP8StatusCode code = WebPDecode(data, len, &config);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return VLP_FAIL(VLP_ERR_MEMORY, "out of memory while reading a WebP file");
    if (code == VP8_STATUS_NOT_ENOUGH_DATA || code == VP8_STATUS_SUSPENDED)
        return bad("ends too early");
    return code == VP8_STATUS_OK ? VLP_OK : bad("does not decode");
}

/* An animation's first frame lies somewhere on a transparent canvas. */
static vlp_status decode_frame(vlp_image *out, const uint8_t *data, size_t len) {
    WebPData bytes = {data, len};
    WebPDemuxState state;
    WebPDemuxer *demux = WebPDemuxPartial(&bytes, &state);
    WebPIterator frame;
    if (!demux || !WebPDemuxGetFrame(demux, 1, &frame)) {
        WebPDemuxDelete(demux);
        return bad("has no whole frame");
    }
    size_t stride = (size_t)out->width * 4,
           at = (size_t)frame.y_offset * stride + (size_t)frame.x_offset * 4;
    bool fits = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 && frame.height > 0 &&
                frame.x_offset <= out->width - frame.width &&
                frame.y_offset <= out->height - frame.height;
    vlp_status status = fits ? VLP_OK : bad("has a frame outside its canvas");
    if (status == VLP_OK) {
        memset(out->pixels, 0, stride * (size_t)out->height);
        status = decode_into(frame.fragment.bytes, frame.fragment.size, out->pixels + at,
                             (int)stride, stride * (size_t)out->height - at);
    }
    WebPDemuxReleaseIterator(&frame);
    WebPDemuxDelete(demux);
    return status;
}

vlp_status vlp_webp_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                           const vlp_decode_options *options) {
    WebPBitstreamFeatures features;
    vlp_image_header header = {0};
    VLP_TRY(vlp_webp_probe(&header, data, len));
    VLP_TRY(vlp_image_check_limit(header.width, header.height, options->max_pixels));
    if (cut_off(data, len)) return bad("ends too early");
    *orientation = options->exif_rotate ? header.orientation : 1;
    VLP_TRY(vlp_image_prepare(out, header.width, header.height, 4, *orientation));
    if (WebPGetFeatures(data, len, &features) != VP8_STATUS_OK) return bad("has a bad header");
    size_t stride = (size_t)header.width * 4;
    if (stride > INT_MAX) return bad("is too wide");
    VLP_TRY(features.has_animation
                ? decode_frame(out, data, len)
                : decode_into(data, len, out->pixels, (int)stride, stride * (size_t)header.height));
    vlp_image_rgba_to_rgb(out, options->background);
    return VLP_OK;
}
