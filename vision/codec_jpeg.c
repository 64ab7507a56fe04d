#include "core/memory.h"
#include "vision/codec.h"
#include "vision/exif.h"
#include "vision/thumbnail.h"

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it before */
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum {
    MAX_SCANS = 500
}; /* photographs have about ten; crafted files thousands, each a full pass */

/* libjpeg reports errors by a jump: whatever must be released lives here, not in locals. */
typedef struct {
    struct jpeg_error_mgr error; /* first: libjpeg knows this part */
    struct jpeg_decompress_struct jpeg;
    struct jpeg_progress_mgr progress;
    vlp_status status;
    jmp_buf jump;
} jpeg_reader;

/* Codes with a pixel loss that a viewer would paper over with grey. Other warnings, such as stray
 * bytes between segments, do not change the picture. */
static bool is_fatal_warning(int code) {
    static const int fatal[] = {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE,
                                JWRN_MUST_RESYNC, JWRN_ARITH_BAD_CODE};
    for (size_t i = 0; i < VLP_COUNT(fatal); i++)
        if (code == fatal[i]) return true;
    return false;
}

static vlp_status status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return VLP_ERR_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_CONVERSION_NOTIMPL:
        return VLP_ERR_UNSUPPORTED;
    default:
        return VLP_ERR_FORMAT;
    }
}

static _Noreturn void on_error(j_common_ptr jpeg) {
    jpeg_reader *r = (jpeg_reader *)(void *)jpeg->err;
    char message[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, message);
    if (jpeg->err->msg_code == JWRN_JPEG_EOF)
        r->status = VLP_FAIL(VLP_ERR_FORMAT, "is a JPEG file that ends too early");
    else
        r->status = VLP_FAIL(status_of(jpeg->err->msg_code),
                             "is a JPEG file that does not decode: %s", message);
    longjmp(r->jump, 1);
}

static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && is_fatal_warning(jpeg->err->msg_code)) on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg) {
    jpeg_reader *r = (jpeg_reader *)(void *)jpeg->err;
    if (r->jpeg.input_scan_number <= MAX_SCANS) return;
    r->status = VLP_FAIL(VLP_ERR_LIMIT, "is a JPEG file with more than %d scans", MAX_SCANS);
    longjmp(r->jump, 1);
}

static int orientation_of(const struct jpeg_decompress_struct *jpeg) {
    static const char exif[6] = "Exif\0";
    for (jpeg_saved_marker_ptr m = jpeg->marker_list; m; m = m->next)
        if (m->data_length > sizeof exif && memcmp(m->data, exif, sizeof exif) == 0)
            return vlp_exif_orientation(m->data + sizeof exif, m->data_length - sizeof exif);
    return 1;
}

static void read_header(jpeg_reader *r, vlp_image_header *out, const uint8_t *data, size_t len) {
    jpeg_create_decompress(&r->jpeg);
    jpeg_mem_src(&r->jpeg, data, len);
    jpeg_save_markers(&r->jpeg, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(&r->jpeg, TRUE);
    out->format = VLP_FORMAT_JPEG;
    out->width = (int)r->jpeg.image_width;
    out->height = (int)r->jpeg.image_height;
    out->orientation = orientation_of(&r->jpeg);
}

/* Huffman coding spends at least a bit on each 8x8 block of the largest component. */
static vlp_status check_enough_data(const jpeg_reader *r, size_t len) {
    uint64_t pixels = (uint64_t)r->jpeg.image_width * r->jpeg.image_height;
    if (r->jpeg.arith_code || pixels / (8 * 64) <= len) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "is a JPEG file of %zu bytes, too few for its %u x %u pixels",
                    len, r->jpeg.image_width, r->jpeg.image_height);
}

/* Powers of two only, their inverse transforms are vectorised: 3/8 takes longer than 1/2, and 5/8
 * to 7/8 take longer than full size. */
static unsigned scale_denominator(int width, int height, int min_side) {
    int64_t side = width < height ? width : height;
    unsigned denominator = 1;
    if (min_side <= 0) return denominator;
    while (denominator < 8 && (side + 2 * denominator - 1) / (2 * denominator) >= min_side)
        denominator *= 2;
    return denominator;
}

/* CMYK files hold inverted inks (Adobe's convention, as PIL assumes for all of them). */
static void cmyk_row_to_rgb(uint8_t *rgb, const uint8_t *cmyk, size_t width) {
    for (size_t x = 0; x < width; x++, rgb += 3, cmyk += 4) {
        uint32_t light = cmyk[3];
        for (int c = 0; c < 3; c++) {
            uint32_t ink = (255u - cmyk[c]) * light + 128;
            ink = (ink + (ink >> 8)) >> 8; /* / 255, rounded */
            rgb[c] = (uint8_t)(light > ink ? light - ink : 0);
        }
    }
}

static void read_rgb_rows(jpeg_reader *r, vlp_image *out) {
    size_t stride = (size_t)out->width * 3;
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        JSAMPROW rows[4];
        uint32_t first = r->jpeg.output_scanline, count = r->jpeg.output_height - first;
        if (count > VLP_COUNT(rows)) count = VLP_COUNT(rows);
        for (uint32_t i = 0; i < count; i++) rows[i] = out->pixels + (first + i) * stride;
        jpeg_read_scanlines(&r->jpeg, rows, count);
    }
}

static void read_cmyk_rows(jpeg_reader *r, vlp_image *out) {
    size_t width = (size_t)out->width;
    JSAMPARRAY row =
        r->jpeg.mem->alloc_sarray((j_common_ptr)&r->jpeg, JPOOL_IMAGE, (JDIMENSION)(width * 4), 1);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        uint8_t *to = out->pixels + r->jpeg.output_scanline * width * 3;
        jpeg_read_scanlines(&r->jpeg, row, 1);
        cmyk_row_to_rgb(to, row[0], width);
    }
}

static vlp_status read_jpeg(jpeg_reader *r, vlp_image *out, int *orientation, const uint8_t *data,
                            size_t len, const vlp_decode_options *options) {
    vlp_image_header header = {0};
    read_header(r, &header, data, len);
    VLP_TRY(vlp_image_check_limit(header.width, header.height, options->max_pixels));
    VLP_TRY(check_enough_data(r, len));
    *orientation = options->exif_rotate ? header.orientation : 1;

    bool cmyk = r->jpeg.num_components == 4;
    r->jpeg.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    r->jpeg.scale_num = 1;
    r->jpeg.scale_denom = scale_denominator(header.width, header.height, options->min_side);
    r->progress.progress_monitor = on_progress;
    r->jpeg.progress = &r->progress;
    jpeg_start_decompress(&r->jpeg);
    VLP_TRY(vlp_image_prepare(out, (int)r->jpeg.output_width, (int)r->jpeg.output_height, 3,
                              *orientation));
    (cmyk ? read_cmyk_rows : read_rgb_rows)(r, out);
    jpeg_finish_decompress(&r->jpeg);
    return VLP_OK;
}

static void init_reader(jpeg_reader *r) {
    memset(r, 0, sizeof *r);
    r->jpeg.err = jpeg_std_error(&r->error);
    r->error.error_exit = on_error;
    r->error.emit_message = on_message;
}

static vlp_status read_jpeg_guarded(jpeg_reader *r, vlp_image *out, int *orientation,
                                    const uint8_t *data, size_t len,
                                    const vlp_decode_options *options) {
    if (setjmp(r->jump)) return r->status;
    return read_jpeg(r, out, orientation, data, len, options);
}

vlp_status vlp_jpeg_decode(vlp_image *out, int *orientation, const uint8_t *data, size_t len,
                           const vlp_decode_options *options) {
    jpeg_reader reader;
    init_reader(&reader);
    vlp_status status = read_jpeg_guarded(&reader, out, orientation, data, len, options);
    jpeg_destroy_decompress(&reader.jpeg);
    return status;
}

static vlp_status probe_guarded(jpeg_reader *r, vlp_image_header *out, const uint8_t *data,
                                size_t len) {
    if (setjmp(r->jump)) return r->status;
    read_header(r, out, data, len);
    return VLP_OK;
}

vlp_status vlp_jpeg_probe(vlp_image_header *out, const uint8_t *data, size_t len) {
    jpeg_reader reader;
    init_reader(&reader);
    vlp_status status = probe_guarded(&reader, out, data, len);
    jpeg_destroy_decompress(&reader.jpeg);
    return status;
}

/* Writing: libjpeg fills `block`, which is appended to the buffer whenever it is full. */
typedef struct {
    struct jpeg_error_mgr error; /* first: libjpeg knows this part */
    struct jpeg_compress_struct jpeg;
    struct jpeg_destination_mgr destination;
    vlp_buf *out;
    vlp_status status;
    jmp_buf jump;
    uint8_t block[4096];
} jpeg_writer;

static _Noreturn void on_write_error(j_common_ptr jpeg) {
    jpeg_writer *w = (jpeg_writer *)(void *)jpeg->err;
    char message[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, message);
    if (w->status == VLP_OK)
        w->status = VLP_FAIL(status_of(jpeg->err->msg_code), "writing JPEG: %s", message);
    longjmp(w->jump, 1);
}

static void start_block(j_compress_ptr jpeg) {
    jpeg_writer *w = (jpeg_writer *)(void *)jpeg->err;
    w->destination.next_output_byte = w->block;
    w->destination.free_in_buffer = sizeof w->block;
}

static void append_block(jpeg_writer *w, size_t bytes) {
    w->status = vlp_buf_append(w->out, w->block, bytes);
    if (w->status != VLP_OK) longjmp(w->jump, 1);
}

static boolean flush_block(j_compress_ptr jpeg) {
    jpeg_writer *w = (jpeg_writer *)(void *)jpeg->err;
    append_block(w, sizeof w->block); /* libjpeg means the whole block, whatever free_in_buffer */
    start_block(jpeg);
    return TRUE;
}

static void finish_block(j_compress_ptr jpeg) {
    jpeg_writer *w = (jpeg_writer *)(void *)jpeg->err;
    append_block(w, sizeof w->block - w->destination.free_in_buffer);
}

static vlp_status write_jpeg_guarded(jpeg_writer *w, const vlp_image *image, int quality) {
    if (setjmp(w->jump)) return w->status;
    struct jpeg_compress_struct *jpeg = &w->jpeg;
    jpeg_create_compress(jpeg);
    jpeg->dest = &w->destination;
    jpeg->image_width = (JDIMENSION)image->width;
    jpeg->image_height = (JDIMENSION)image->height;
    jpeg->input_components = 3;
    jpeg->in_color_space = JCS_RGB;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = image->pixels + (size_t)jpeg->next_scanline * (size_t)image->width * 3;
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
    return VLP_OK;
}

vlp_status vlp_image_encode_jpeg(const vlp_image *image, int quality, vlp_buf *out) {
    jpeg_writer writer;
    memset(&writer, 0, sizeof writer);
    writer.out = out;
    writer.jpeg.err = jpeg_std_error(&writer.error);
    writer.error.error_exit = on_write_error;
    writer.destination.init_destination = start_block;
    writer.destination.empty_output_buffer = flush_block;
    writer.destination.term_destination = finish_block;
    vlp_status status = write_jpeg_guarded(&writer, image, quality);
    jpeg_destroy_compress(&writer.jpeg);
    return status;
}

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *vlp_jpeg_version(void) {
#ifdef LIBJPEG_TURBO_VERSION
    return TEXT(LIBJPEG_TURBO_VERSION);
#else
    return TEXT(JPEG_LIB_VERSION);
#endif
}
