/* GIF: the first frame on its canvas. */
#include "core/memory.h"
#include "vision/codec.h"

#include <gif_lib.h>
#include <string.h>

typedef struct {
    const uint8_t *data;
    size_t len, at;
    bool ended;
} source;

static int read_bytes(GifFileType *gif, GifByteType *to, int want) {
    source *s = gif->UserData;
    size_t n = (size_t)want < s->len - s->at ? (size_t)want : s->len - s->at;
    memcpy(to, s->data + s->at, n);
    s->at += n;
    if (n < (size_t)want) s->ended = true;
    return (int)n;
}

static uint32_t le16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

vlp_status vlp_gif_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    if (len < 13) return VLP_FAIL(VLP_ERR_FORMAT, "is a GIF file that ends within its header");
    out->format = VLP_FORMAT_GIF;
    out->width = (int)le16(data + 6);
    out->height = (int)le16(data + 8);
    out->orientation = 1;
    if (out->width > 0 && out->height > 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "is a GIF file with a bad header");
}

/* Everything before the first image: the graphic control block names the transparent colour. */
static vlp_status find_image(GifFileType *gif, const source *s, int *transparent) {
    GifRecordType type;
    *transparent = NO_TRANSPARENT_COLOR;
    while (DGifGetRecordType(gif, &type) == GIF_OK) {
        if (type == IMAGE_DESC_RECORD_TYPE) return VLP_OK;
        if (type == TERMINATE_RECORD_TYPE) break;
        if (type != EXTENSION_RECORD_TYPE) continue;
        int code;
        GifByteType *block;
        GraphicsControlBlock control;
        if (DGifGetExtension(gif, &code, &block) != GIF_OK) break;
        if (code == GRAPHICS_EXT_FUNC_CODE && block &&
            DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
            *transparent = control.TransparentColor;
        while (block && DGifGetExtensionNext(gif, &block) == GIF_OK && block) continue;
        if (s->ended) break;
    }
    return VLP_FAIL(VLP_ERR_FORMAT, s->ended ? "is a GIF file that ends too early"
                                             : "is a GIF file without a picture in it");
}

/* Rows of an interlaced picture come in four passes. */
static int row_of(const GifImageDesc *image, int nth) {
    static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
    if (!image->Interlace) return nth;
    for (int pass = 0; pass < 4; pass++) {
        int rows = (image->Height - first[pass] + step[pass] - 1) / step[pass];
        if (rows < 0) rows = 0;
        if (nth < rows) return first[pass] + nth * step[pass];
        nth -= rows;
    }
    return 0;
}

static void put_row(vlp_image *out, const GifImageDesc *image, const ColorMapObject *map, int y,
                    const uint8_t *codes, int transparent) {
    int top = image->Top + y;
    for (int x = 0; x < image->Width; x++) {
        int left = image->Left + x, code = codes[x];
        if (code >= map->ColorCount || left >= out->width || top >= out->height) continue;
        uint8_t *to = out->pixels + ((size_t)top * (size_t)out->width + (size_t)left) * 4;
        to[0] = map->Colors[code].Red;
        to[1] = map->Colors[code].Green;
        to[2] = map->Colors[code].Blue;
        to[3] = code == transparent ? 0 : 255; /* its colour shows where alpha is dropped */
    }
}

static vlp_status read_image(GifFileType *gif, const source *s, vlp_image *out, int transparent) {
    const GifImageDesc *image = &gif->Image;
    const ColorMapObject *map = image->ColorMap ? image->ColorMap : gif->SColorMap;
    if (!map) return VLP_FAIL(VLP_ERR_FORMAT, "is a GIF file without colours");
    if (image->Width < 1 || image->Height < 1 || image->Width > 65535)
        return VLP_FAIL(VLP_ERR_FORMAT, "is a GIF file with an empty picture");
    uint8_t *codes = vlp_alloc((size_t)image->Width);
    if (!codes) return VLP_ERR_MEMORY;
    vlp_status status = VLP_OK;
    for (int y = 0; y < image->Height && status == VLP_OK; y++) {
        if (DGifGetLine(gif, codes, image->Width) == GIF_OK)
            put_row(out, image, map, row_of(image, y), codes, transparent);
        else
            status = VLP_FAIL(VLP_ERR_FORMAT, s->ended ? "is a GIF file that ends too early"
                                                       : "is a GIF file that does not decode");
    }
    vlp_free(codes);
    return status;
}

/* A canvas is promised in bytes that cost nothing: a frame's own size is checked too. */
static vlp_status read_gif(GifFileType *gif, const source *s, vlp_image *out,
                           const vlp_decode_options *options) {
    int transparent;
    VLP_TRY(find_image(gif, s, &transparent));
    if (DGifGetImageDesc(gif) != GIF_OK)
        return VLP_FAIL(VLP_ERR_FORMAT, "is a GIF file with a bad picture header");
    VLP_TRY(vlp_image_check_limit(gif->Image.Width, gif->Image.Height, options->max_pixels));
    VLP_TRY(vlp_image_prepare(out, gif->SWidth, gif->SHeight, 4, 1));
    memset(out->pixels, 0, (size_t)out->width * (size_t)out->height * 4);
    VLP_TRY(read_image(gif, s, out, transparent));
    vlp_image_rgba_to_rgb(out, options->background);
    return VLP_OK;
}

vlp_status vlp_gif_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                          const vlp_decode_options *options) {
    vlp_image_header header = {0};
    VLP_TRY(vlp_gif_probe(&header, data, len));
    VLP_TRY(vlp_image_check_limit(header.width, header.height, options->max_pixels));
    *orientation = 1;
    source s = {.data = data, .len = len};
    int code = 0;
    GifFileType *gif = DGifOpen(&s, read_bytes, &code);
    if (!gif && code == D_GIF_ERR_NOT_ENOUGH_MEM)
        return VLP_FAIL(VLP_ERR_MEMORY, "out of memory while reading a GIF file");
    if (!gif) return VLP_FAIL(VLP_ERR_FORMAT, "is a GIF file with a bad header");
    vlp_status status = read_gif(gif, &s, out, options);
    DGifCloseFile(gif, &code);
    return status;
}
