/* The layouts that models are written in: which names and files, and what of a model fits. */
#ifndef VLP_FUSION_LAYOUT_H
#define VLP_FUSION_LAYOUT_H

#include "core/checkpoint_rename.h"
#include "fusion/model.h"

/* What is to be written. */
typedef struct {
    const vlp_model_config *config;
    bool words_head;    /* with the head of masked language modelling */
    double temperature; /* of similarities, where the model keeps its logarithm */
} vlp_layout_source;

/* The names: a parameter is written under its name in each of the maps (twins, tied weights); and
 * tensors that the layout has besides. */
enum { VLP_LAYOUT_COPIES = 4, VLP_LAYOUT_FILLERS = 16 };
typedef struct {
    vlp_name_map names[VLP_LAYOUT_COPIES];
    int copies;
    vlp_filler fillers[VLP_LAYOUT_FILLERS];
    int filler_count;
} vlp_layout_plan;

/* A new map; a new filler of so many dimensions (0, 1 or 2 of the sizes), its name put together. */
vlp_name_map *vlp_layout_map(vlp_layout_plan *plan);
void vlp_layout_fill(vlp_layout_plan *plan, vlp_filler filler, const char *prefix,
                     const char *name);

/* Ours in a config.json of another layout, under "vlp": what the other layout's keys cannot say.
 * Where it is there, it is what is read. Nothing is added if ours cannot say it either. */
void vlp_layout_add_own(vlp_json *json, const vlp_model_config *config);
/* What our own configuration cannot say of a model; NULL = nothing. */
const char *vlp_layout_own_misfit(const vlp_model_config *config);

typedef struct {
    const char *format;                        /* as --to names it */
    const char *weights, *config_file;         /* in the folder */
    bool (*is_for)(const vlp_model_config *c); /* the models that this row of the format is for */
    const char *(*misfit)(
        const vlp_model_config *c); /* what it cannot hold of c; NULL = all fits */
    vlp_status (*config)(vlp_json **out, const vlp_model_config *c);
    void (*plan)(vlp_layout_plan *out, const vlp_layout_source *source);
    bool words_head; /* there is a place for the head of masked language modelling */
} vlp_layout;

/* The row of a format for such a model; VLP_ERR_UNSUPPORTED says what does not fit. */
vlp_status vlp_layout_find(const vlp_layout **out, const char *format, const vlp_model_config *c);

extern const vlp_layout vlp_layout_albef, vlp_layout_blip, vlp_layout_blip_hf, vlp_layout_dual;

#endif
