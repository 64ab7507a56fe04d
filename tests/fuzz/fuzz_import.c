/* Every importer that reads a file, and the filter language, on arbitrary bytes. The first byte
 * chooses. The index lives in memory; a small picture lies beside the file. */
#include "core/file.h"
#include "datasets/catalogue.h"
#include "datasets/filter.h"
#include "datasets/import.h"
#include "vision/thumbnail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const formats[] = {"auto",     "csv",   "tsv", "jsonl",  "coco",
                                      "karpathy", "albef", "idx", "text",   "vqa",
                                      "genome",   "llava", "cc",  "flickr", "webdataset"};
static vlp_index *fuzz_index;
static char folder[512], source[600];

static void remove_files(void) {
    char picture[600];
    snprintf(picture, sizeof picture, "%s/a.png", folder);
    unlink(picture);
    unlink(source);
    rmdir(folder);
    vlp_index_free(fuzz_index);
}

static void begin(void) {
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/vlp-fuzz-XXXXXX", base ? base : P_tmpdir);
    if (!mkdtemp(folder)) abort();
    snprintf(source, sizeof source, "%s/a.png", folder);
    uint8_t pixels[12] = {0};
    vlp_image image = {.width = 2, .height = 2, .pixels = pixels, .capacity = sizeof pixels};
    if (vlp_image_write_png(&image, source) != VLP_OK) abort();
    snprintf(source, sizeof source, "%s/images-idx3", folder);
    if (vlp_index_open(&fuzz_index, ":memory:", VLP_DB_WRITE) != VLP_OK) abort();
    atexit(remove_files);
}

static void import(const char *format, const uint8_t *data, size_t len) {
    FILE *file = fopen(source, "wb");
    if (!file || fwrite(data, 1, len, file) != len || fclose(file) != 0) abort();
    vlp_import_options options = {.format = format, .map = source, .clean = "albef", .check = true};
    vlp_import_report report = {0};
    vlp_index_import(fuzz_index, source, &options, &report);
    if (vlp_db_exec(vlp_index_db(fuzz_index), "DELETE FROM sources") != VLP_OK) abort();
}

static void search(const uint8_t *data, size_t len) {
    char *text = vlp_strndup((const char *)data, len);
    vlp_catalogue some;
    if (vlp_catalogue_load(&some, fuzz_index, "m", 4, text) == VLP_OK) vlp_catalogue_close(&some);
    vlp_hit hits[5];
    int64_t n;
    if (vlp_catalogue_words(fuzz_index, text, NULL, 5, hits, &n) != VLP_OK) abort();
    vlp_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    if (!fuzz_index) begin();
    if (len == 0) return 0;
    size_t kind = data[0] % (VLP_COUNT(formats) + 1);
    if (kind < VLP_COUNT(formats))
        import(formats[kind], data + 1, len - 1);
    else
        search(data + 1, len - 1);
    return 0;
}
