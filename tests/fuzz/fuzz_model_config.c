/* Reads the bytes as the configuration file of every model family; what is accepted must be within
 * the limits that allocation relies on. */
#include "fusion/albef.h"
#include "fusion/blip.h"
#include "fusion/clip.h"
#include "text/bert_config.h"
#include "vision/vit_config.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_json *json;
    if (vlp_json_parse(&json, (const char *)data, size, "config.json") != VLP_OK) return 0;
    vlp_vit_config vit;
    vlp_bert_config bert;
    vlp_model_config clip, model;
    if (vlp_vit_config_read(&vit, json, "config.json") == VLP_OK)
        VLP_ASSERT(vit.patch > 0 && vit.image_height > 0 && vit.image_width > 0 && vit.width > 0 &&
                       vit.heads > 0 && vit.mlp_width >= 0 && vit.depth <= VLP_MAX_DEPTH,
                   "a ViT without sizes");
    if (vlp_bert_config_read(&bert, json, "config.json") == VLP_OK)
        VLP_ASSERT(bert.vocab > 0 && bert.width > 0 && bert.heads > 0 && bert.pad_id < bert.vocab,
                   "a BERT without sizes");
    if (vlp_clip_config_read(&clip, json, "config.json") == VLP_OK)
        VLP_ASSERT(clip.embedding > 0 && clip.clip_text.vocab > 0 && clip.vision.patch > 0,
                   "a CLIP without sizes");
    if (vlp_albef_config_read(&model, json, "config.json") == VLP_OK)
        VLP_ASSERT(model.text.depth >= 0 && model.fusion.depth >= 0 &&
                       model.fusion.width == model.text.width && model.text_length > 0,
                   "an ALBEF without sizes");
    if (vlp_blip_config_read(&model, json, "config.json") == VLP_OK)
        VLP_ASSERT(model.text.vocab > 0 && model.text.width > 0 && model.text_length > 0 &&
                       model.decoder.width == model.text.width && model.embedding > 0,
                   "a BLIP without sizes");
    if (vlp_model_config_any(&model, json, "config.json") == VLP_OK)
        VLP_ASSERT(model.vision.patch > 0 && model.text.width >= 0 && model.clip_text.width >= 0 &&
                       (model.text.width == 0 || model.clip_text.width == 0),
                   "a model without sizes");
    vlp_json_free(json);
    return 0;
}
