/* PyTorch archives: zip directory, pickle, tensors; and the input as a bare pickle, so that its
 * mutations are not lost on the zip's checks. Seeds: tests/data/checkpoints/. */
#include "core/memory.h"
#include "core/pickle.h"
#include "core/torch_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool any_global(const char *module, const char *name) {
    return *module != '\0' || *name != '\0';
}

static void read_pickle(const uint8_t *data, size_t size) {
    vlp_pickle *pickle;
    if (vlp_pickle_read(&pickle, data, size, any_global, "fuzz") != VLP_OK) return;
    const vlp_pickle_value *top = vlp_pickle_top(pickle);
    VLP_ASSERT(top, "a pickle without a value");
    if (vlp_pickle_key(top, "state_dict")) vlp_pickle_is_call(top, "collections.OrderedDict");
    vlp_pickle_free(pickle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_safetensors *file;
    double sum = 0;
    read_pickle(data, size);
    if (vlp_torch_open_memory(&file, data, size, "fuzz") != VLP_OK) return 0;
    for (size_t i = 0; i < vlp_safetensors_count(file); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i);
        for (int64_t k = 0; k < t->numel; k++) sum += vlp_safetensor_value(t, k);
    }
    VLP_ASSERT(vlp_safetensors_count(file) > 0 || sum == 0, "no tensors");
    vlp_safetensors_close(file);
    return 0;
}
