/* One import run: what every importer calls. Private to the folder. */
#ifndef VLP_DATASETS_SESSION_H
#define VLP_DATASETS_SESSION_H

#include "datasets/import.h"

typedef struct vlp_session vlp_session;

typedef struct {
    const char *path;       /* absolute */
    int64_t offset, length; /* inside a container; 0, 0 for an encoded file */
    vlp_stored stored;
    int width, height;    /* of raw pixels */
    const uint8_t *bytes; /* in a container: raw pixels, or the encoded image */
    size_t n_bytes;
    const char *item;              /* in a container: which picture of it */
    int64_t file_size, file_mtime; /* of the container; an encoded file is looked at here */
    const char *split, *label;     /* as the source says, or NULL */
    const char *fields;            /* other columns as a JSON object, or NULL */
    int64_t row;                   /* line or number in the source, 0 for a file alone */
} vlp_session_image;

/* What became of an image row. */
typedef enum { VLP_ROW_SKIPPED, VLP_ROW_NEW, VLP_ROW_CHANGED, VLP_ROW_UNCHANGED } vlp_row_news;

vlp_status vlp_session_open(vlp_session **out, vlp_index *index, const char *source,
                            const char *format, const vlp_import_options *options,
                            vlp_import_report *report);
/* Removes what the source no longer lists, marks it complete and commits. */
vlp_status vlp_session_finish(vlp_session *session);
/* Commits what was done so far and frees; NULL is legal. */
void vlp_session_free(vlp_session *session);

/* Adds or finds an image. *id = 0 when it was skipped (already counted and recorded). */
vlp_status vlp_session_image_row(vlp_session *session, const vlp_session_image *image, int64_t *id,
                                 vlp_row_news *news);

/* The same for a name that the source gives: relative to the root, and never outside it. */
vlp_status vlp_session_named_image(vlp_session *session, const char *name, vlp_session_image *image,
                                   int64_t *id);

/* Cleans and adds a caption (image_id > 0) or a text (image_id = 0). An empty one is a skip. */
vlp_status vlp_session_caption(vlp_session *session, int64_t image_id, const char *text, size_t len,
                               const char *kind, int64_t row);
/* A caption made from a class name: all captions of a class mean the same, so they share the
 * class's group and are positives of one another. */
vlp_status vlp_session_class_caption(vlp_session *session, int64_t image_id, const char *text,
                                     size_t len, const char *class_name, int64_t row);
/* Whether a caption would be empty, so that its image need not be added. */
bool vlp_session_blank(const char *text, size_t len);

/* Side-car captions: the stored time of an image's caption file (-1 = none), dropping its captions
 * to add them anew, and storing the time once all are added: a kill in between redoes them. */
vlp_status vlp_session_captions_time(vlp_session *session, int64_t image_id, int64_t *mtime);
vlp_status vlp_session_forget_captions(vlp_session *session, int64_t image_id);
vlp_status vlp_session_captions_done(vlp_session *session, int64_t image_id, int64_t mtime);
/* All captions that the image has are still wanted. */
vlp_status vlp_session_keep_captions(vlp_session *session, int64_t image_id);

/* Questions of this source; number is the source's own. Empty answers are passed over; an answer
 * given again gets a vote more. */
vlp_status vlp_session_question(vlp_session *session, int64_t image_id, int64_t number,
                                const char *text, size_t len, const char *kind, int64_t *id);
vlp_status vlp_session_find_question(vlp_session *session, int64_t number, int64_t *id);
vlp_status vlp_session_answer(vlp_session *session, int64_t question_id, const char *text,
                              size_t len);
vlp_status vlp_session_forget_questions(vlp_session *session);

vlp_status vlp_session_skip(vlp_session *session, const char *path, int64_t row,
                            vlp_skip_reason reason, const char *detail);

const vlp_import_options *vlp_session_options(const vlp_session *session);
vlp_import_report *vlp_session_report(const vlp_session *session);
/* A database of the run's own, for tables that are too large for memory; gone with the session. */
vlp_status vlp_session_scratch(vlp_session *session, vlp_db **out);
const char *vlp_session_source(const vlp_session *session); /* absolute path */
/* Folder that relative image names start from: --images, else the source's folder. */
const char *vlp_session_root(const vlp_session *session);

/* A format: sniff returns 0..100 how sure it is; run imports. */
typedef struct {
    const char *name;
    int (*sniff)(const char *path, bool is_folder, const char *head, size_t len);
    vlp_status (*run)(vlp_session *session);
} vlp_importer;

extern const vlp_importer vlp_importer_folder, vlp_importer_imagefolder, vlp_importer_csv,
    vlp_importer_tsv, vlp_importer_jsonl, vlp_importer_coco, vlp_importer_karpathy,
    vlp_importer_albef, vlp_importer_idx, vlp_importer_text, vlp_importer_webdataset,
    vlp_importer_vqa, vlp_importer_genome, vlp_importer_llava, vlp_importer_cc, vlp_importer_flickr;

/* Keys that people use, best first; NULL-terminated. */
extern const char *const vlp_image_keys[], *const vlp_caption_keys[];
/* Whether a name ends like an image's (.jpg, .png, ...), also kinds that vlp cannot read. */
bool vlp_is_image_name(const char *name);
/* The file name's extension with its dot, or "". */
const char *vlp_extension(const char *name);

#endif
