/* Importing: people's pairs, whatever form they have, into the index.
 *
 * Nothing is decoded: a new image costs one open, one read (whole up to 1 MiB, else its first MiB
 * and samples) for its header and content hash; an unchanged one (size and time) costs one stat.
 * Transactions are bounded, so a killed import loses seconds and running it again completes it.
 * Rows and files that cannot be used are counted by reason and listed in the index. */
#ifndef VLP_DATASETS_IMPORT_H
#define VLP_DATASETS_IMPORT_H

#include "datasets/index.h"

typedef enum {
    VLP_SKIP_MISSING,
    VLP_SKIP_ZERO_BYTES,
    VLP_SKIP_UNREADABLE,
    VLP_SKIP_NOT_AN_IMAGE,
    VLP_SKIP_UNSUPPORTED,
    VLP_SKIP_TRUNCATED,
    VLP_SKIP_TOO_LARGE,
    VLP_SKIP_EMPTY_CAPTION,
    VLP_SKIP_BAD_ROW,
    VLP_SKIP_OUTSIDE,
    VLP_SKIP_UNDECODABLE,
    VLP_SKIP_COUNT
} vlp_skip_reason;
const char *vlp_skip_name(vlp_skip_reason reason); /* "missing", "zero bytes", ... */

/* {0} is valid: format and keys detected, split "train" unless the source names its own. Strings
 * are borrowed. */
typedef struct {
    const char *format;      /* a name from vlp_import_formats, NULL or "auto" to sniff */
    const char *name;        /* the source's name in mixtures and stats; NULL = from its path */
    const char *images;      /* folder that holds the images, and none outside it; NULL = the
                                source's, for relative names */
    const char *image_key;   /* column or key; NULL = detected */
    const char *caption_key; /* column or key; NULL = detected */
    const char *split;       /* every row goes to this split */
    const char *split_hash;  /* "90,5,5": train, val, test by image content */
    const char *classes;     /* idx, webdataset: file with a class name a line */
    const char *templates;   /* class datasets: file with a caption a line, {} = the class */
    const char *annotations; /* vqa: the answers; NULL = the file that goes with the questions */
    const char *map;         /* cc: file with lines URL, tab, image path */
    int64_t max_pixels;      /* larger images are skipped; 0 = the decoder's default */
    int64_t max_bytes;       /* the same for a picture's file, or member of an archive */
    const char *clean; /* captions: NULL or "basic" (datasets/caption.h), or "albef"; the source's
                          own words are kept beside where they differ */
    bool dedupe;       /* bytes that the index has already come in once: their captions join
                          the first picture's */
    bool check;        /* decode every image too (vlp_index_verify) */
    int threads;       /* for check; 0 = all */
    double commit_seconds; /* of work that a kill may lose; 0 = 1 */
    /* Called about twice a second; returning false stops with VLP_ERR_INTERRUPTED, saved. */
    bool (*progress)(int64_t rows, void *user);
    bool (*checking)(int64_t done, int64_t total, void *user); /* the same while `check` decodes */
    /* Called for every skipped row or file. */
    void (*skipped)(const char *path, int64_t row, vlp_skip_reason reason, const char *detail,
                    void *user);
    void *user;
} vlp_import_options;

/* Counts add up over calls, so several sources share one report. */
typedef struct {
    int64_t images, captions, texts; /* usable rows of the sources; texts have no image */
    int64_t questions;
    int64_t added, changed, unchanged, removed;
    int64_t moved; /* files of a known content whose old place is empty: rows and embeddings stay */
    int64_t gone;  /* files that are listed no more and not there: marked, not removed */
    int64_t skipped, by_reason[VLP_SKIP_COUNT];
    int64_t duplicates;   /* images whose bytes equal an earlier image's */
    int64_t crossed;      /* duplicates that asked for another split than their group's */
    int64_t repaired;     /* captions with malformed UTF-8, NUL or more than 65,536 bytes */
    char recognised[512]; /* the last source in words: "captions.csv: csv, image column ..." */
} vlp_import_report;

/* Imports one source (a file or folder). Its name is the file's without extension, or the folder's;
 * with the parent folder in front when another source has it. Zero usable rows is an error that
 * says why. Rows of the source that are gone since its last import leave the index.
 *
 * Duplicates of one image always share a split: test wins over val over others over train, so that
 * a held-out split stays whole and nothing of it is trained on. */
vlp_status vlp_index_import(vlp_index *index, const char *source, const vlp_import_options *options,
                            vlp_import_report *report);

/* The report as `vlp index --json` prints it; the caller frees it. */
vlp_json *vlp_import_report_json(const vlp_import_report *report);

/* Names of the formats, separated by '|'. */
const char *vlp_import_formats(void);

#endif
