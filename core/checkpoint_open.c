/* Which container a checkpoint is, and the parts of one that lies in several files. */
#include "core/checkpoint.h"
#include "core/safetensors_internal.h"
#include "core/suggest.h"
#include "core/torch_file.h"

#include <stdio.h>
#include <string.h>

/* What a model folder may hold, in the order in which it is looked for. */
static const char *const file_names[] = {
    "model.safetensors", "model.safetensors.index.json", "open_clip_model.safetensors",
    "pytorch_model.bin", "pytorch_model.bin.index.json", "open_clip_pytorch_model.bin",
};

static vlp_status old_torch(const char *path) {
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: PyTorch's format of before 1.6; write it anew with torch.save(torch.load("
                    "FILE, map_location=\"cpu\"), FILE)",
                    path);
}

static vlp_status no_checkpoint(const char *path) {
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: neither safetensors nor a PyTorch checkpoint (zip) nor an index of either",
                    path);
}

static vlp_status open_index(vlp_safetensors **out, const char *path);

/* By the first bytes: names are no guide, .bin and .pt hold anything. A part is no index. */
static vlp_status open_file(vlp_safetensors **out, const char *path, bool part) {
    vlp_map map;
    uint8_t head[9] = {0};
    VLP_TRY(vlp_map_open(&map, path));
    size_t len = map.len;
    if (len) memcpy(head, map.data, len < sizeof head ? len : sizeof head);
    vlp_map_close(&map);
    if (memcmp(head, "PK\3\4", 4) == 0) return vlp_torch_open(out, path);
    if (len > 8 && head[8] == '{') return vlp_safetensors_open(out, path);
    if (head[0] == 0x80 && head[1] <= 5) return old_torch(path);
    if (head[0] == '{' && !part) return open_index(out, path);
    const char *dot = strrchr(path, '.');
    if (dot && strcmp(dot, ".safetensors") == 0) return vlp_safetensors_open(out, path);
    return no_checkpoint(path);
}

/* The part of that file name, opened when first named. */
static vlp_status part_of(vlp_safetensors *set, const char *folder, const char *name,
                          vlp_safetensors **out) {
    vlp_buf path = {0};
    if (strchr(name, '/') || *name == '\0')
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: \"%.96s\" is no file beside it", set->path, name);
    vlp_status status = vlp_path_join(&path, folder, name);
    for (size_t i = 0; status == VLP_OK && i < set->part_count; i++)
        if (strcmp(set->parts[i]->path, path.data) == 0) {
            *out = set->parts[i];
            goto done;
        }
    VLP_TRY_DONE(status);
    VLP_TRY_DONE(open_file(out, path.data, true));
    status = vlp_safetensors_add_part(set, *out);
done:
    vlp_buf_free(&path);
    return status;
}

static vlp_status read_index(vlp_safetensors *set, const char *folder) {
    const vlp_json *map = vlp_json_key(set->header, "weight_map");
    if (!vlp_json_is_object(map))
        return VLP_FAIL(VLP_ERR_FORMAT, "%s: no \"weight_map\": not the index of a checkpoint",
                        set->path);
    for (void *it = vlp_json_first(map); it; it = vlp_json_next(map, it)) {
        vlp_safetensors *part;
        const vlp_safetensor *t;
        VLP_TRY(part_of(set, folder, vlp_json_as_string(vlp_json_iter_value(it)), &part));
        VLP_TRY(vlp_safetensors_get(part, vlp_json_iter_key(it), &t));
        VLP_TRY(vlp_safetensors_add(set, t));
    }
    return vlp_safetensors_finish(set);
}

static vlp_status open_index(vlp_safetensors **out, const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? vlp_strndup(path, (size_t)(slash - path) + 1) : vlp_strdup(".");
    vlp_status status = vlp_safetensors_new(out, path);
    if (!folder) status = VLP_ERR_MEMORY;
    if (status == VLP_OK) status = vlp_json_load(&(*out)->header, path);
    if (status == VLP_OK) status = read_index(*out, folder);
    vlp_free(folder);
    if (status == VLP_OK) return VLP_OK;
    vlp_safetensors_close(*out);
    *out = NULL;
    return status;
}

vlp_status vlp_checkpoint_path(const char *folder, vlp_buf *path) {
    for (size_t i = 0; i < VLP_COUNT(file_names); i++) {
        VLP_TRY(vlp_path_join(path, folder, file_names[i]));
        if (vlp_path_exists(path->data)) return VLP_OK;
    }
    return VLP_FAIL(VLP_ERR_NOT_FOUND,
                    "%s: no weights there; model.safetensors or pytorch_model.bin, or an index of "
                    "several such files, is looked for",
                    folder);
}

vlp_status vlp_checkpoint_open(vlp_safetensors **out, const char *path) {
    *out = NULL;
    if (!vlp_is_folder(path)) return open_file(out, path, false);
    vlp_buf found = {0};
    vlp_status status = vlp_checkpoint_path(path, &found);
    if (status == VLP_OK) status = open_file(out, found.data, false);
    vlp_buf_free(&found);
    return status;
}
