/* preprocessor_config.json: what is read can be written and read again. */
#include "vision/transform.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_json *json = NULL;
    if (vlp_json_parse(&json, (const char *)data, size, "fuzz") != VLP_OK) return 0;
    vlp_transform transform, again;
    if (vlp_transform_from_json(&transform, json, "fuzz") == VLP_OK) {
        vlp_json *copy = vlp_transform_to_json(&transform);
        if (vlp_transform_from_json(&again, copy, "fuzz") != VLP_OK) abort();
        if (again.image_size != transform.image_size || again.fit != transform.fit) abort();
        vlp_json_free(copy);
    }
    vlp_json_free(json);
    return 0;
}
