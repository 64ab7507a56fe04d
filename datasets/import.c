#include "datasets/import.h"

#include "core/file.h"
#include "core/log.h"
#include "datasets/session.h"
#include "datasets/shards.h"
#include "datasets/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const vlp_importer *const importers[] = {
    &vlp_importer_folder, &vlp_importer_csv,         &vlp_importer_tsv,
    &vlp_importer_jsonl,  &vlp_importer_coco,        &vlp_importer_karpathy,
    &vlp_importer_albef,  &vlp_importer_imagefolder, &vlp_importer_text,
    &vlp_importer_idx,    &vlp_importer_webdataset,  &vlp_importer_vqa,
    &vlp_importer_genome, &vlp_importer_llava,       &vlp_importer_cc,
    &vlp_importer_flickr,
};

static const char *const skip_names[VLP_SKIP_COUNT] = {
    [VLP_SKIP_MISSING] = "missing",
    [VLP_SKIP_ZERO_BYTES] = "zero bytes",
    [VLP_SKIP_UNREADABLE] = "unreadable",
    [VLP_SKIP_NOT_AN_IMAGE] = "not an image",
    [VLP_SKIP_UNSUPPORTED] = "unsupported image format",
    [VLP_SKIP_TRUNCATED] = "truncated header",
    [VLP_SKIP_TOO_LARGE] = "too large",
    [VLP_SKIP_EMPTY_CAPTION] = "empty caption",
    [VLP_SKIP_BAD_ROW] = "bad row",
    [VLP_SKIP_OUTSIDE] = "outside the images folder",
    [VLP_SKIP_UNDECODABLE] = "undecodable",
};

const char *vlp_skip_name(vlp_skip_reason reason) {
    return skip_names[reason];
}

const char *vlp_import_formats(void) {
    return "auto|folder|imagefolder|csv|tsv|jsonl|coco|karpathy|albef|webdataset|vqa|genome|llava|"
           "cc|"
           "flickr|idx|text";
}

const char *const vlp_image_keys[] = {"image",      "image_path", "img_path", "imgpath",
                                      "filepath",   "file_path",  "path",     "file_name",
                                      "filename",   "file",       "img",      "image_file",
                                      "image_name", "picture",    "photo",    NULL};
const char *const vlp_caption_keys[] = {"caption",  "captions",  "text",        "texts",   "title",
                                        "sentence", "sentences", "description", "comment", "alt",
                                        "alt_text", "raw",       "txt",         NULL};

const char *vlp_extension(const char *name) {
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? dot : "";
}

bool vlp_is_image_name(const char *name) {
    static const char *const extensions[] = {".jpg",  ".jpeg", ".png", ".jpe",  ".jfif", ".webp",
                                             ".gif",  ".bmp",  ".tif", ".tiff", ".heic", ".heif",
                                             ".avif", ".dng",  ".jp2", ".jxl",  ".psd"};
    const char *extension = vlp_extension(name);
    for (size_t i = 0; i < VLP_COUNT(extensions); i++)
        if (strcasecmp(extension, extensions[i]) == 0) return true;
    return false;
}

/* The first bytes of a file; none of a folder. */
static vlp_status read_head(const char *path, char *head, size_t max, size_t *len) {
    *len = 0;
    if (vlp_is_folder(path)) return VLP_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    bool regular = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n = regular ? read(fd, head, max) : -1;
    if (fd >= 0) close(fd);
    if (fd >= 0 && !regular)
        return VLP_FAIL(VLP_ERR_USAGE, "%s: neither a file nor a folder; save it to a file first",
                        path);
    if (n < 0) return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: cannot be read; check the path", path);
    *len = (size_t)n;
    return VLP_OK;
}

static const vlp_importer *by_name(const char *name) {
    for (size_t i = 0; i < VLP_COUNT(importers); i++)
        if (strcmp(importers[i]->name, name) == 0) return importers[i];
    return NULL;
}

/* What the format is told by: the source, or the first file that a pattern gives. */
static vlp_status sample_of(const char *source, vlp_buf *out) {
    vlp_shards shards = {0};
    if (vlp_is_pattern(source)) VLP_TRY(vlp_shards_open(&shards, source));
    int64_t i = 0;
    while (i < shards.count && !vlp_path_exists(shards.paths[i])) i++;
    const char *sample = i < shards.count ? shards.paths[i] : source;
    vlp_status status = vlp_buf_puts(out, sample);
    if (status == VLP_OK && !vlp_path_exists(sample))
        status = VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no such file or folder; check the path", source);
    vlp_shards_close(&shards);
    return status;
}

static const struct {
    const char *magic;
    size_t len;
    const char *cure;
} foreign[] = {
    {"PAR1", 4,
     "Parquet, which vlp does not read; convert it: duckdb -c \"COPY (SELECT * FROM '%s') "
     "TO 'pairs.csv' (HEADER)\""},
    {"ARROW1", 6,
     "Arrow, which vlp does not read; convert it: python3 -c \"import pyarrow.feather as f;"
     " f.read_table('%s').to_pandas().to_csv('pairs.csv')\""},
    {"\x89HDF", 4, "HDF5, which vlp does not read; export its rows as CSV or JSON Lines%.0s"},
    {"SQLite format 3", 15,
     "an SQLite database, not a source; export its rows as CSV or JSON Lines%.0s"},
};

static vlp_status refuse_foreign(const char *source, const char *head, size_t len) {
    for (size_t i = 0; i < VLP_COUNT(foreign); i++) {
        if (len < foreign[i].len || memcmp(head, foreign[i].magic, foreign[i].len) != 0) continue;
        char cure[1024];
        snprintf(cure, sizeof cure, foreign[i].cure, source);
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "%s: this is %s", source, cure);
    }
    return VLP_OK;
}

static vlp_status choose(const char *source, const char *format, const vlp_importer **out) {
    char head[4097] = "";
    size_t len;
    VLP_TRY(read_head(source, head, sizeof head - 1, &len));
    VLP_TRY(refuse_foreign(source, head, len));
    if (format && strcmp(format, "auto") != 0) {
        *out = by_name(format);
        if (*out) return VLP_OK;
        return VLP_FAIL(VLP_ERR_USAGE, "unknown format \"%s\"; known: %s", format,
                        vlp_import_formats());
    }
    int best = 0;
    for (size_t i = 0; i < VLP_COUNT(importers); i++) {
        int sure = importers[i]->sniff(source, vlp_is_folder(source), head, len);
        if (sure > best) *out = importers[i];
        if (sure > best) best = sure;
    }
    if (best > 0) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: not recognised as any of %s; say which with --format",
                    source, vlp_import_formats());
}

/* A folder that holds a manifest under a usual name is that manifest. */
static const char *const manifests[] = {"metadata.jsonl", "metadata.csv", "captions.jsonl",
                                        "captions.csv",   "captions.tsv", "captions.txt",
                                        "captions.json",  "results.csv",  "pairs.jsonl",
                                        "pairs.csv",      "pairs.tsv"};

static vlp_status find_manifest(const char *source, const char *format, vlp_buf *path) {
    bool any = !format || strcmp(format, "auto") == 0;
    VLP_TRY(vlp_buf_puts(path, source));
    if (!any || !vlp_is_folder(source)) return VLP_OK;
    for (size_t i = 0; i < VLP_COUNT(manifests); i++) {
        VLP_TRY(vlp_path_join(path, source, manifests[i]));
        if (vlp_path_exists(path->data)) return VLP_OK;
    }
    vlp_buf_clear(path);
    return vlp_buf_puts(path, source);
}

/* A manifest found in a folder goes by the folder's name: "clipart", not "captions". */
static vlp_status folder_name(const char *source, const char *path, vlp_buf *name) {
    if (strcmp(source, path) == 0) return VLP_OK;
    size_t end = strlen(source);
    while (end > 1 && source[end - 1] == '/') end--;
    size_t start = end;
    while (start > 0 && source[start - 1] != '/') start--;
    if (start == end || source[start] == '.') return VLP_OK;
    return vlp_buf_append(name, source + start, end - start);
}

static vlp_status check_images(vlp_index *index, const vlp_import_options *options,
                               vlp_import_report *report) {
    vlp_verify_options verify = {.threads = options->threads,
                                 .max_pixels = options->max_pixels,
                                 .max_bytes = options->max_bytes,
                                 .progress = options->checking,
                                 .bad = options->skipped,
                                 .user = options->user};
    vlp_verify_report verified = {0};
    vlp_status status = vlp_index_verify(index, &verify, &verified);
    report->skipped += verified.bad;
    report->by_reason[VLP_SKIP_UNDECODABLE] += verified.bad;
    report->images -= verified.bad;
    return status;
}

static vlp_status import_one(vlp_index *index, const char *source,
                             const vlp_import_options *options, vlp_import_report *report) {
    const vlp_importer *importer = NULL;
    vlp_session *session = NULL;
    vlp_import_options named = *options;
    vlp_buf path = {0}, sample = {0}, name = {0};
    int64_t captions = report->captions;
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(find_manifest(source, options->format, &path));
    VLP_TRY_DONE(sample_of(path.data, &sample));
    VLP_TRY_DONE(choose(sample.data, options->format, &importer));
    if (vlp_is_pattern(path.data) && importer != &vlp_importer_webdataset)
        VLP_TRY_DONE(VLP_FAIL(
            VLP_ERR_USAGE, "%s: a pattern is for archives; name the files one by one", path.data));
    VLP_TRY_DONE(folder_name(source, path.data, &name));
    if (!named.name && name.len) named.name = name.data;
    VLP_TRY_DONE(vlp_session_open(&session, index, path.data, importer->name, &named, report));
    snprintf(report->recognised, sizeof report->recognised, "%s: %s", path.data, importer->name);
    VLP_TRY_DONE(importer->run(session));
    vlp_log(VLP_LOG_INFO, "%s", report->recognised);
    if (options->caption_key && report->captions == captions)
        VLP_TRY_DONE(VLP_FAIL(VLP_ERR_USAGE,
                              "%s: no row has a caption under \"%s\"; name another key", path.data,
                              options->caption_key));
    VLP_TRY_DONE(vlp_session_finish(session));
done:
    vlp_session_free(session);
    vlp_buf_free(&path);
    vlp_buf_free(&sample);
    vlp_buf_free(&name);
    return status;
}

static const struct {
    const char *folder, *split;
} split_folders[] = {{"train", "train"}, {"validation", "val"}, {"valid", "val"},
                     {"val", "val"},     {"dev", "val"},        {"test", "test"}};

/* "photos/train" is called photos-train, beside photos-test. */
static vlp_status import_split(vlp_index *index, const char *source, const char *folder,
                               const char *split, const vlp_import_options *options,
                               vlp_import_report *report) {
    vlp_import_options one = *options;
    vlp_buf name = {0};
    vlp_status status = folder_name(source, "", &name);
    const char *base = options->name ? options->name : name.data;
    if (!options->split && !options->split_hash) one.split = split;
    vlp_buf full = {0};
    if (status == VLP_OK && base)
        status = vlp_buf_printf(&full, "%s-%s", base, strrchr(folder, '/') + 1);
    if (full.len) one.name = full.data;
    if (status == VLP_OK) status = import_one(index, folder, &one, report);
    vlp_buf_free(&name);
    vlp_buf_free(&full);
    return status;
}

/* Hugging Face's layout: a manifest in each of train/, validation/, test/. */
static vlp_status import_splits(vlp_index *index, const char *source,
                                const vlp_import_options *options, vlp_import_report *report,
                                bool *any) {
    vlp_buf folder = {0}, manifest = {0};
    vlp_status status = VLP_OK;
    bool automatic = !options->format || strcmp(options->format, "auto") == 0;
    for (size_t i = 0; automatic && i < VLP_COUNT(split_folders); i++) {
        VLP_TRY_DONE(vlp_path_join(&folder, source, split_folders[i].folder));
        if (!vlp_is_folder(folder.data)) continue;
        vlp_buf_clear(&manifest);
        VLP_TRY_DONE(find_manifest(folder.data, NULL, &manifest));
        if (vlp_is_folder(manifest.data)) continue;
        *any = true;
        VLP_TRY_DONE(
            import_split(index, source, folder.data, split_folders[i].split, options, report));
    }
done:
    vlp_buf_free(&folder);
    vlp_buf_free(&manifest);
    return status;
}

vlp_status vlp_index_import(vlp_index *index, const char *source, const vlp_import_options *options,
                            vlp_import_report *report) {
    if (options->split && options->split_hash)
        return VLP_FAIL(VLP_ERR_USAGE, "--split puts every row into one split and --split-hash"
                                       " divides them; give one of the two");
    bool splits = false;
    if (vlp_is_folder(source)) VLP_TRY(import_splits(index, source, options, report, &splits));
    if (!splits) VLP_TRY(import_one(index, source, options, report));
    return options->check ? check_images(index, options, report) : VLP_OK;
}

vlp_json *vlp_import_report_json(const vlp_import_report *report) {
    vlp_json *json = vlp_json_new_object(), *reasons = vlp_json_new_object();
    const struct {
        const char *key;
        int64_t value;
    } members[] = {
        {"images", report->images},
        {"captions", report->captions},
        {"texts", report->texts},
        {"questions", report->questions},
        {"new", report->added},
        {"changed", report->changed},
        {"unchanged", report->unchanged},
        {"removed", report->removed},
        {"moved", report->moved},
        {"gone", report->gone},
        {"skipped", report->skipped},
        {"duplicates", report->duplicates},
        {"duplicates_across_splits", report->crossed},
        {"repaired_captions", report->repaired},
    };
    for (size_t i = 0; i < VLP_COUNT(members); i++)
        vlp_json_set_int(json, members[i].key, members[i].value);
    for (int r = 0; r < VLP_SKIP_COUNT; r++)
        if (report->by_reason[r]) vlp_json_set_int(reasons, skip_names[r], report->by_reason[r]);
    vlp_json_set(json, "skipped_by_reason", reasons);
    return json;
}
