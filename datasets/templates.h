/* Captions made from class names: "a photo of a {}." */
#ifndef VLP_DATASETS_TEMPLATES_H
#define VLP_DATASETS_TEMPLATES_H

#include "core/memory.h"
#include "datasets/session.h"

typedef struct {
    vlp_buf text; /* the file; without one, "{}" */
    vlp_buf caption;
} vlp_templates;

/* path NULL: the class name itself. Each line must hold {} once. */
vlp_status vlp_templates_open(vlp_templates *templates, const char *path);
void vlp_templates_free(vlp_templates *templates);

/* Adds one caption a template; underscores of the class name become spaces. */
vlp_status vlp_templates_apply(vlp_templates *templates, vlp_session *session, int64_t image_id,
                               const char *class_name, int64_t row);

/* Line `number` (from 0) of a file of class names, or the number itself without one. */
vlp_status vlp_class_name(const vlp_buf *classes, int number, char out[256]);

#endif
