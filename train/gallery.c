#include "train/gallery.h"

#include "datasets/reader.h"
#include "train/html.h"

enum { SIDE = 320 };

static vlp_status picture(vlp_buf *page, vlp_reader *reader, const vlp_found_hit *hit,
                          vlp_image *image) {
    vlp_located located;
    vlp_decode_options decode = vlp_decode_defaults;
    decode.min_side = SIDE;
    vlp_status status = vlp_reader_locate(reader, hit->id, &located);
    if (status == VLP_OK) status = vlp_reader_pixels(reader, &located, &decode, 0, image);
    if (status == VLP_OK) return vlp_html_picture(page, image, SIDE, hit->caption);
    VLP_TRY(vlp_buf_puts(page, "<em>"));
    VLP_TRY(vlp_html_text(page, vlp_error()));
    return vlp_buf_puts(page, "</em>");
}

static vlp_status figure(vlp_buf *page, vlp_reader *reader, const vlp_found_hit *hit, int64_t rank,
                         vlp_image *image) {
    vlp_located located;
    VLP_TRY(vlp_reader_locate(reader, hit->id, &located));
    VLP_TRY(vlp_buf_puts(page, "<figure><a href=\""));
    VLP_TRY(vlp_html_file_address(page, located.path)); /* the file, without the item in it */
    VLP_TRY(vlp_buf_puts(page, "\">"));
    VLP_TRY(picture(page, reader, hit, image));
    VLP_TRY(vlp_buf_printf(page, "</a><figcaption>%lld. ", (long long)rank));
    VLP_TRY(vlp_html_text(page, hit->caption));
    VLP_TRY(
        vlp_buf_printf(page, "<br><span class=\"chance\">%.4f, z %.1f<br>", hit->score, hit->z));
    VLP_TRY(vlp_html_text(page, hit->path));
    return vlp_buf_puts(page, "</span></figcaption></figure>\n");
}

vlp_status vlp_gallery_html(vlp_buf *page, const vlp_index *index, const char *title,
                            const vlp_found *found) {
    vlp_reader *reader;
    vlp_image image = {0};
    VLP_TRY(vlp_reader_open(&reader, vlp_index_path(index)));
    vlp_status status = vlp_html_open(page, title);
    if (status == VLP_OK) status = vlp_buf_puts(page, "<div class=\"gallery\">\n");
    for (int64_t i = 0; i < found->n && status == VLP_OK; i++)
        status = figure(page, reader, &found->hits[i], i + 1, &image);
    if (status == VLP_OK) status = vlp_buf_puts(page, "</div>\n");
    if (status == VLP_OK) status = vlp_html_close(page);
    vlp_image_free(&image);
    vlp_reader_free(reader);
    return status;
}
