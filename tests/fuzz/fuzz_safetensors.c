#include "core/memory.h"
#include "core/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_tensor(const vlp_safetensor *t) {
    vlp_real *reals = vlp_alloc_zero((size_t)t->numel, sizeof *reals);
    int32_t *integers = vlp_alloc_zero((size_t)t->numel, sizeof *integers);
    VLP_ASSERT(reals && integers, "memory");
    bool real = vlp_safetensors_read_real(t, reals, t->numel) == VLP_OK;
    bool integer = vlp_safetensors_read_i32(t, integers, t->numel) == VLP_OK;
    VLP_ASSERT(!real || !integer, "both a real and an integer");
    vlp_free(reals);
    vlp_free(integers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vlp_safetensors *file;
    if (vlp_safetensors_open_memory(&file, data, size, "fuzz") != VLP_OK) return 0;
    size_t bytes = 0;
    for (size_t i = 0; i < vlp_safetensors_count(file); i++) {
        const vlp_safetensor *t = vlp_safetensors_at(file, i), *found;
        read_tensor(t);
        bytes += t->bytes;
        VLP_ASSERT(vlp_safetensors_get(file, t->name, &found) == VLP_OK && found == t, "find");
    }
    VLP_ASSERT(bytes < size, "more data than file");
    const vlp_safetensor *none;
    if (vlp_safetensors_get(file, "weigth", &none) != VLP_OK) none = NULL;
    vlp_safetensors_metadata(file, "format");
    vlp_safetensors_close(file);
    return 0;
}
