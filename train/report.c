#include "train/report.h"

#include "core/memory.h"
#include "train/html.h"
#include "train/report_internal.h"

#include <string.h>

const char vlp_protocol_retrieval[] =
    "every picture of the split against every caption of the split; all captions of a picture, and "
    "equal captions of others, count as right; half of the ties count against the model";
const char vlp_protocol_zero_shot[] =
    "class names through the templates, vectors averaged (prompt ensembling); the nearest class by "
    "cosine answers; ties count against the model";
const char vlp_protocol_pixels[] =
    "no learning: the label of the nearest training picture by distance of raw pixels";

void vlp_class_recall(const vlp_zero_shot *z, int64_t class, int64_t *pictures, int64_t *right) {
    const int64_t *row = z->confusion + class * z->classes;
    *pictures = 0;
    for (int64_t k = 0; k < z->classes; k++) *pictures += row[k];
    *right = row[class];
}

vlp_status vlp_csv_quote(vlp_buf *out, const char *text) {
    if (!strpbrk(text, ",\"\r\n")) return vlp_buf_puts(out, text);
    VLP_TRY(vlp_buf_puts(out, "\""));
    for (; *text; text++) {
        VLP_TRY(vlp_buf_append(out, text, 1));
        if (*text == '"') VLP_TRY(vlp_buf_puts(out, "\""));
    }
    return vlp_buf_puts(out, "\"");
}

vlp_status vlp_confusion_csv(vlp_buf *out, const vlp_zero_shot *z, const char *const *classes) {
    VLP_TRY(vlp_buf_puts(out, "true class"));
    for (int64_t k = 0; k < z->classes; k++) {
        VLP_TRY(vlp_buf_puts(out, ","));
        VLP_TRY(vlp_csv_quote(out, classes[k]));
    }
    VLP_TRY(vlp_buf_puts(out, "\n"));
    for (int64_t c = 0; c < z->classes; c++) {
        VLP_TRY(vlp_csv_quote(out, classes[c]));
        for (int64_t k = 0; k < z->classes; k++)
            VLP_TRY(vlp_buf_printf(out, ",%lld", (long long)z->confusion[c * z->classes + k]));
        VLP_TRY(vlp_buf_puts(out, "\n"));
    }
    return VLP_OK;
}

static vlp_status recall_row(vlp_buf *page, const char *what, const double *got,
                             const double *chance) {
    VLP_TRY(vlp_buf_printf(page, "<tr><td>%s</td>", what));
    for (int k = 0; k < VLP_RECALL_LEVELS; k++)
        VLP_TRY(vlp_buf_printf(page,
                               "<td class=\"n\">%.2f %%</td><td class=\"n chance\">%.2f %%</td>",
                               100 * got[k], 100 * chance[k]));
    return vlp_buf_puts(page, "</tr>\n");
}

static vlp_status retrieval_section(vlp_buf *page, const vlp_retrieval *r) {
    VLP_TRY(vlp_buf_printf(page,
                           "<h2>Retrieval: %lld pictures, %lld captions</h2>\n<p class=\"chance\">"
                           "%s</p>\n<table><tr><th></th>",
                           (long long)r->images, (long long)r->captions, vlp_protocol_retrieval));
    for (int k = 0; k < VLP_RECALL_LEVELS; k++)
        VLP_TRY(vlp_buf_printf(page, "<th class=\"n\">R@%d</th><th class=\"n chance\">chance</th>",
                               vlp_recall_at[k]));
    VLP_TRY(vlp_buf_puts(page, "</tr>\n"));
    VLP_TRY(recall_row(page, "image to text", r->image_to_text, r->image_to_text_chance));
    VLP_TRY(recall_row(page, "text to image", r->text_to_image, r->text_to_image_chance));
    return vlp_buf_puts(page, "</table>\n");
}

static vlp_status class_rows(vlp_buf *page, const vlp_report *r) {
    VLP_TRY(vlp_buf_puts(page, "<table><tr><th>class</th><th class=\"n\">pictures</th>"
                               "<th class=\"n\">right</th><th class=\"n\">accuracy</th></tr>\n"));
    for (int64_t c = 0; c < r->zero_shot->classes; c++) {
        int64_t pictures, right;
        vlp_class_recall(r->zero_shot, c, &pictures, &right);
        VLP_TRY(vlp_buf_puts(page, "<tr><td>"));
        VLP_TRY(vlp_html_text(page, r->classes[c]));
        VLP_TRY(vlp_buf_printf(page, "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>",
                               (long long)pictures, (long long)right));
        VLP_TRY(pictures ? vlp_buf_printf(page, "<td class=\"n\">%.1f %%</td></tr>\n",
                                          100 * (double)right / (double)pictures)
                         : vlp_buf_puts(page, "<td class=\"n\">-</td></tr>\n"));
    }
    return vlp_buf_puts(page, "</table>\n");
}

/* One cell: darker the larger its share of the row; the count is in the cell and its title. */
static vlp_status heat_cell(vlp_buf *page, const vlp_report *r, int64_t c, int64_t k,
                            int64_t pictures) {
    int64_t count = r->zero_shot->confusion[c * r->zero_shot->classes + k];
    double share = pictures ? (double)count / (double)pictures : 0;
    const char *rgb = c == k ? "10,107,45" : "178,34,34";
    VLP_TRY(vlp_buf_printf(page, "<td style=\"background:rgba(%s,%.3f);color:%s\" title=\"", rgb,
                           share, share > 0.5 ? "#fff" : "#333"));
    VLP_TRY(vlp_html_text(page, r->classes[c]));
    VLP_TRY(vlp_buf_puts(page, " taken for "));
    VLP_TRY(vlp_html_text(page, r->classes[k]));
    VLP_TRY(vlp_buf_printf(page, ": %lld of %lld\">", (long long)count, (long long)pictures));
    if (count) VLP_TRY(vlp_buf_printf(page, "%lld", (long long)count));
    return vlp_buf_puts(page, "</td>");
}

/* Beyond so many classes the map would be a page of tiny cells; the CSV holds it. */
enum { HEAT_CLASSES = 100 };

static vlp_status heat_map(vlp_buf *page, const vlp_report *r) {
    int64_t n = r->zero_shot->classes;
    VLP_TRY(vlp_buf_puts(page, "<h2>Confusion: rows true, columns answered</h2>\n"));
    if (n > HEAT_CLASSES)
        return vlp_buf_printf(page, "<p>%lld classes are too many to draw.</p>\n", (long long)n);
    VLP_TRY(vlp_buf_puts(page, "<table class=\"heat\"><thead><tr><th></th>"));
    for (int64_t k = 0; k < n; k++) {
        VLP_TRY(vlp_buf_puts(page, "<th>"));
        VLP_TRY(vlp_html_text(page, r->classes[k]));
        VLP_TRY(vlp_buf_puts(page, "</th>"));
    }
    VLP_TRY(vlp_buf_puts(page, "</tr></thead>\n"));
    for (int64_t c = 0; c < n; c++) {
        int64_t pictures, right;
        vlp_class_recall(r->zero_shot, c, &pictures, &right);
        VLP_TRY(vlp_buf_puts(page, "<tr><th>"));
        VLP_TRY(vlp_html_text(page, r->classes[c]));
        VLP_TRY(vlp_buf_puts(page, "</th>"));
        for (int64_t k = 0; k < n; k++) VLP_TRY(heat_cell(page, r, c, k, pictures));
        VLP_TRY(vlp_buf_puts(page, "</tr>\n"));
    }
    return vlp_buf_puts(page, "</table>\n");
}

static vlp_status zero_shot_section(vlp_buf *page, const vlp_report *r) {
    const vlp_zero_shot *z = r->zero_shot;
    VLP_TRY(vlp_buf_printf(page,
                           "<h2>Zero-shot: %lld pictures, %lld classes</h2>\n"
                           "<p class=\"chance\">%s; %lld templates</p>\n"
                           "<p>top-1 <b>%.2f %%</b> <span class=\"chance\">(chance %.2f %%)</span>",
                           (long long)z->images, (long long)z->classes, vlp_protocol_zero_shot,
                           (long long)z->templates, 100 * z->top1, 100 * z->chance));
    double five = 5 * z->chance < 1 ? 5 * z->chance : 1;
    VLP_TRY(vlp_buf_printf(
        page, ", top-5 <b>%.2f %%</b> <span class=\"chance\">(chance %.2f %%)</span></p>\n",
        100 * z->top5, 100 * five));
    VLP_TRY(class_rows(page, r));
    return heat_map(page, r);
}

static vlp_status pixel_section(vlp_buf *page, const vlp_pixel_yardstick *p) {
    VLP_TRY(vlp_buf_printf(page,
                           "<h2>Yardstick without learning</h2>\n<p class=\"chance\">%s</p>\n"
                           "<p>%lld pictures against %lld training pictures: ",
                           vlp_protocol_pixels, (long long)p->images, (long long)p->train_images));
    VLP_TRY(p->label_top1 >= 0
                ? vlp_buf_printf(page, "label top-1 <b>%.2f %%</b>, ", 100 * p->label_top1)
                : vlp_buf_puts(page, "no labels, "));
    return p->caption_at1 >= 0 ? vlp_buf_printf(page, "a caption right at 1 <b>%.2f %%</b></p>\n",
                                                100 * p->caption_at1)
                               : vlp_buf_puts(page, "no caption occurs in training</p>\n");
}

vlp_status vlp_report_html(vlp_buf *page, const vlp_report *r, vlp_embedder *e,
                           const vlp_index *index, const vlp_eval_set *set) {
    VLP_TRY(vlp_html_open(page, r->title));
    VLP_TRY(vlp_buf_puts(page, "<p>"));
    VLP_TRY(vlp_html_text(page, r->data));
    VLP_TRY(vlp_buf_puts(page, ", split "));
    VLP_TRY(vlp_html_text(page, r->split ? r->split : "(all)"));
    if (r->source) VLP_TRY(vlp_buf_puts(page, ", source "));
    VLP_TRY(vlp_html_text(page, r->source ? r->source : ""));
    VLP_TRY(vlp_buf_puts(page, "</p>\n"));
    if (r->retrieval) VLP_TRY(retrieval_section(page, r->retrieval));
    if (r->zero_shot) VLP_TRY(zero_shot_section(page, r));
    if (r->pixels) VLP_TRY(pixel_section(page, r->pixels));
    VLP_TRY(vlp_report_pictures(page, r, e, index, set));
    return vlp_html_close(page);
}
