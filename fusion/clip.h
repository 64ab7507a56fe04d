/* CLIP (Radford et al., 2021) and its kin: an image tower and a text tower without fusion,
 * projected into one space and compared by cosine. Checkpoints of OpenAI's CLIP, of open_clip (also
 * with a text tower of its own, "custom text", and CoCa's towers), and Hugging Face's CLIPModel and
 * SiglipModel open as a vlp_model. */
#ifndef VLP_FUSION_CLIP_H
#define VLP_FUSION_CLIP_H

#include "fusion/model.h"

/* How a file names the parameters. */
typedef enum {
    VLP_CLIP_HF,
    VLP_CLIP_OPENAI, /* open_clip too */
    VLP_CLIP_CUSTOM, /* open_clip with the text tower behind "text." */
} vlp_clip_layout;

/* Whether config.json is one of these: Hugging Face's (model_type "clip" or "siglip"), open_clip's
 * ("vision_cfg", also inside "model_cfg"), or the constructor's keys of OpenAI's CLIP. */
bool vlp_clip_is_config(const vlp_json *json);
/* `where` is the file. VLP_ERR_UNSUPPORTED names what cannot be computed: other image towers, an
 * unknown activation or pooling. */
vlp_status vlp_clip_config_read(vlp_model_config *out, const vlp_json *json, const char *where);
/* The same sizes from the tensors of OpenAI's layout, as its own loader does; heads are 64 wide. */
vlp_status vlp_clip_config_from_file(vlp_model_config *out, const vlp_safetensors *file);

bool vlp_clip_is_file(const vlp_safetensors *file);
/* What only the tensors say: a bias of the logits, a projection with a bias. */
void vlp_clip_complete(vlp_model_config *config, const vlp_safetensors *file);
unsigned vlp_clip_parts(const vlp_safetensors *file); /* VLP_MODEL_... */
vlp_clip_layout vlp_clip_layout_of(const vlp_safetensors *file);

/* Adds the tables of a layout for a model declared without a prefix. */
void vlp_clip_names_of(vlp_name_map *map, const vlp_model_config *config, vlp_clip_layout layout);
/* The same for the file's layout; `momentum` is not for these. */
void vlp_clip_names(vlp_name_map *map, const vlp_model_config *config, const vlp_safetensors *file,
                    bool momentum);

/* config.json in the layout's own keys: Hugging Face's CLIPConfig or SiglipConfig, open_clip's
 * model_cfg, or the constructor's keys of OpenAI's CLIP. */
vlp_json *vlp_clip_config_write(const vlp_model_config *config, vlp_clip_layout layout,
                                bool openai);
/* What the layout cannot say of a model; NULL = nothing. */
const char *vlp_clip_misfit(const vlp_model_config *config, vlp_clip_layout layout, bool openai);

/* Half of the cross-entropies over rows and over columns; pairs lie on the diagonal.
 * logits [B, B] -> scalar */
vlp_tensor *vlp_clip_loss(vlp_tape *tape, vlp_tensor *logits);
/* SigLIP (Zhai et al., 2023): -sum_ij log sigmoid(y_ij logits_ij) / B, y = 1 where column j is
 * first + i and -1 elsewhere.  logits [B, N] -> scalar */
vlp_tensor *vlp_siglip_loss(vlp_tape *tape, vlp_tensor *logits, int64_t first);

/* The same losses of ranks that each hold B pairs. What open_clip's ClipLoss calls local_loss and
 * gather_with_grad: with `local`, a rank compares its own rows with everybody's, else everybody's
 * with everybody's; without `with_grad` the others' rows are constants. image, text [B, E], of unit
 * length; the mean over ranks of the loss with `with_grad` is that of one process with all pairs.
 */
typedef struct {
    vlp_comm *comm;
    bool local, with_grad;
} vlp_clip_ranks;
vlp_tensor *vlp_clip_loss_ranks(vlp_tape *tape, const vlp_clip_ranks *ranks, vlp_tensor *image,
                                vlp_tensor *text, vlp_tensor *logit_scale, double most);
/* SigLIP's: this rank's images with everybody's texts. `bias` is a scalar or NULL. */
vlp_tensor *vlp_siglip_loss_ranks(vlp_tape *tape, vlp_comm *comm, vlp_tensor *image,
                                  vlp_tensor *text, vlp_tensor *logit_scale, vlp_tensor *bias,
                                  double most);

#endif
