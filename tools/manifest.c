/* The manifests: JSON Lines of {"image", "caption", "split", "source"}, and class files. */
#include "core/file.h"
#include "core/json.h"
#include "tools/picture.h"

#include <string.h>

static const char *const sources[] = {"openclipart",    "tuxpaint-stamps",   "pysiogame",
                                      "noto-emoji",     "noto-emoji-unseen", "emojione",
                                      "emojione-unseen"};
static const char *const splits[] = {"train", "val", "test"};

/* A manifest holds the pictures of some sources. */
static const struct {
    const char *file, *sources[4];
} manifests[] = {
    {"corpus.jsonl", {"openclipart", "tuxpaint-stamps", "pysiogame", "noto-emoji"}},
    {"emoji-other-vendor.jsonl", {"emojione"}},
    {"emoji-unseen.jsonl", {"noto-emoji-unseen"}},
    {"emoji-unseen-other-vendor.jsonl", {"emojione-unseen"}},
};

/* Prompts for 28 x 28 photographs of clothes (CLIP's ensembling, Radford et al. 2021, 3.1.4). */
static const char *const fashion_templates[] = {
    "{}",
    "a photo of a {}",
    "a black and white photo of a {}",
    "a picture of a {}, clothing",
    "a small photo of a {}",
};
/* The data set's class names as people say them, in its label order. */
static const char *const fashion_classes[] = {
    "t-shirt", "trousers", "pullover", "dress", "coat",
    "sandal",  "shirt",    "sneaker",  "bag",   "ankle boot",
};

static vlp_status write_lines(const char *const *lines, size_t count, const char *folder,
                              const char *name) {
    vlp_buf path = {0}, text = {0};
    vlp_status status = vlp_path_join(&path, folder, name);
    for (size_t i = 0; i < count && status == VLP_OK; i++)
        status = vlp_buf_printf(&text, "%s\n", lines[i]);
    if (status == VLP_OK) status = vlp_file_write(path.data, text.data, text.len);
    vlp_buf_free(&path);
    vlp_buf_free(&text);
    return status;
}

static vlp_status append_row(const corpus_picture *picture, const char *folder, vlp_buf *text) {
    vlp_json *row = vlp_json_new_object(), *captions = vlp_json_new_array();
    size_t n = strlen(folder);
    bool below = strncmp(picture->image, folder, n) == 0 && picture->image[n] == '/';
    vlp_json_set_string(row, "image", below ? picture->image + n + 1 : picture->image);
    for (int i = 0; i < picture->captions; i++)
        vlp_json_append(captions, vlp_json_new_string(picture->caption[i]));
    vlp_json_set(row, "caption", captions);
    vlp_json_set_string(row, "split", picture->split);
    vlp_json_set_string(row, "source", picture->source);
    vlp_status status = vlp_json_dump(row, 0, text);
    vlp_json_free(row);
    return status == VLP_OK ? vlp_buf_puts(text, "\n") : status;
}

static bool belongs(const corpus_picture *picture, size_t manifest) {
    for (size_t i = 0; i < 4 && manifests[manifest].sources[i]; i++) {
        if (strcmp(manifests[manifest].sources[i], picture->source) == 0) return true;
    }
    return false;
}

static vlp_status write_manifest(const corpus_list *list, const char *folder, size_t manifest) {
    vlp_buf path = {0}, text = {0};
    vlp_status status = vlp_path_join(&path, folder, manifests[manifest].file);
    for (int i = 0; i < list->count && status == VLP_OK; i++) {
        const corpus_picture *picture = &list->item[i];
        if (!picture->skip && picture->split && belongs(picture, manifest))
            status = append_row(picture, folder, &text);
    }
    if (status == VLP_OK) status = vlp_file_write(path.data, text.data, text.len);
    vlp_buf_free(&path);
    vlp_buf_free(&text);
    return status;
}

/* What the report counts: pictures of a split, or those left out for a reason. */
static int count_of(const corpus_list *list, const char *source, const char *name, bool left_out,
                    int *captions) {
    int n = 0;
    for (int i = 0; i < list->count; i++) {
        const corpus_picture *p = &list->item[i];
        const char *value = left_out ? p->skip : p->skip ? NULL : p->split;
        if (!value || strcmp(value, name) != 0 || strcmp(p->source, source) != 0) continue;
        n++;
        *captions += p->captions;
    }
    return n;
}

/* source, pictures in each split, captions, and what was left out by reason; tab separated. */
static vlp_status report_counts(const corpus_list *list, vlp_buf *report) {
    static const char *const reasons[] = {
        "generated star",
        "above 16 megapixels",
        "blank",
        "duplicate",
        "variant of a held-out drawing",
        "variant of a test emoji",
        "not decodable",
        "no caption",
    };
    VLP_TRY(vlp_buf_puts(report, "source\ttrain\tval\ttest\tcaptions\tleft out\n"));
    for (size_t s = 0; s < VLP_COUNT(sources); s++) {
        int captions = 0, none = 0;
        VLP_TRY(vlp_buf_puts(report, sources[s]));
        for (size_t k = 0; k < VLP_COUNT(splits); k++)
            VLP_TRY(vlp_buf_printf(report, "\t%d",
                                   count_of(list, sources[s], splits[k], false, &captions)));
        VLP_TRY(vlp_buf_printf(report, "\t%d\t", captions));
        for (size_t k = 0; k < VLP_COUNT(reasons); k++) {
            int n = count_of(list, sources[s], reasons[k], true, &none);
            if (n) VLP_TRY(vlp_buf_printf(report, "%d %s; ", n, reasons[k]));
        }
        VLP_TRY(vlp_buf_puts(report, "\n"));
    }
    return VLP_OK;
}

vlp_status corpus_write(const corpus_list *list, const char *folder,
                        const corpus_split_counts *counts, vlp_buf *report) {
    for (size_t m = 0; m < VLP_COUNT(manifests); m++) VLP_TRY(write_manifest(list, folder, m));
    VLP_TRY(write_lines(fashion_classes, VLP_COUNT(fashion_classes), folder, "fashion-mnist.txt"));
    VLP_TRY(write_lines(fashion_templates, VLP_COUNT(fashion_templates), folder,
                        "fashion-mnist-templates.txt"));
    VLP_TRY(report_counts(list, report));
    return vlp_buf_printf(
        report, "groups %d, largest %d, may be held out %d, exact duplicates %d\n", counts->groups,
        counts->largest_group, counts->candidates, counts->duplicates);
}

vlp_status corpus_write_groups(const corpus_list *list, const char *path) {
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    for (int i = 0; i < list->count && status == VLP_OK; i++) {
        const corpus_picture *p = &list->item[i];
        if (p->image && p->captions)
            status = vlp_buf_printf(&text, "%d\t%s\t%s\n", p->group, p->image, p->caption[0]);
    }
    if (status == VLP_OK) status = vlp_file_write(path, text.data, text.len);
    vlp_buf_free(&text);
    return status;
}
