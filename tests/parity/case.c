#include "parity/case.h"

#include "core/checkpoint.h"
#include "core/file.h"
#include "core/memory.h"

vlp_status parity_path(const parity_case *c, const char *name, vlp_buf *buf) {
    return vlp_path_join(buf, c->folder, name);
}

static vlp_status open_if_there(const parity_case *c, const char *name, vlp_safetensors **out) {
    vlp_buf path = {0};
    vlp_status status = parity_path(c, name, &path);
    if (status == VLP_OK && vlp_path_exists(path.data))
        status = vlp_safetensors_open(out, path.data);
    vlp_buf_free(&path);
    return status;
}

vlp_status parity_case_open(parity_case *c, const char *folder) {
    *c = (parity_case){.folder = folder};
    vlp_buf path = {0};
    vlp_status status;
    VLP_TRY_DONE(parity_path(c, "case.json", &path));
    VLP_TRY_DONE(vlp_json_load(&c->json, path.data));
    c->system = vlp_json_string(c->json, "system", "");
    c->mode = vlp_json_string(c->json, "mode", "");
    VLP_TRY_DONE(parity_path(c, "config.json", &path));
    if (vlp_path_exists(path.data)) VLP_TRY_DONE(vlp_json_load(&c->config, path.data));
    if (vlp_checkpoint_path(folder, &path) == VLP_OK)
        VLP_TRY_DONE(vlp_checkpoint_open(&c->model, path.data));
    VLP_TRY_DONE(open_if_there(c, "inputs.safetensors", &c->inputs));
    VLP_TRY_DONE(open_if_there(c, "expected.safetensors", &c->expected));
done:
    vlp_buf_free(&path);
    return status;
}

void parity_case_close(parity_case *c) {
    vlp_json_free(c->json);
    vlp_json_free(c->config);
    vlp_safetensors_close(c->model);
    vlp_safetensors_close(c->inputs);
    vlp_safetensors_close(c->expected);
    *c = (parity_case){0};
}

vlp_status parity_input(const parity_case *c, const char *name, const vlp_safetensor **out) {
    if (!c->inputs) return VLP_FAIL(VLP_ERR_NOT_FOUND, "%s: no inputs.safetensors", c->folder);
    return vlp_safetensors_get(c->inputs, name, out);
}

bool parity_has_input(const parity_case *c, const char *name) {
    return c->inputs && vlp_safetensors_find(c->inputs, name);
}

vlp_status parity_input_real(const parity_case *c, const char *name, vlp_real **out) {
    const vlp_safetensor *t;
    VLP_TRY(parity_input(c, name, &t));
    *out = vlp_alloc_zero((size_t)t->numel, sizeof **out);
    return *out ? vlp_safetensors_read_real(t, *out, t->numel) : VLP_ERR_MEMORY;
}

vlp_status parity_input_i32(const parity_case *c, const char *name, int32_t **out) {
    const vlp_safetensor *t;
    VLP_TRY(parity_input(c, name, &t));
    *out = vlp_alloc_zero((size_t)t->numel, sizeof **out);
    return *out ? vlp_safetensors_read_i32(t, *out, t->numel) : VLP_ERR_MEMORY;
}
