/* Writing safetensors: a header with the whole layout, then a stream of data. */
#include "core/file.h"
#include "core/json.h"
#include "core/safetensors.h"

#include <string.h>

struct vlp_safetensors_writer {
    vlp_writer out;
    const vlp_safetensor_spec *specs;
    size_t count, at; /* at = the tensor that the next byte belongs to */
    size_t left;      /* bytes still to come of it */
};

static vlp_status spec_bytes(const vlp_safetensor_spec *spec, int64_t *bytes) {
    *bytes = (int64_t)vlp_st_dtype_size(spec->dtype);
    for (int i = 0; i < spec->ndim; i++)
        if (spec->shape[i] < 0 || __builtin_mul_overflow(*bytes, spec->shape[i], bytes))
            return VLP_FAIL(VLP_ERR_USAGE, "tensor \"%s\" has an impossible shape", spec->name);
    return VLP_OK;
}

static vlp_status add_entry(vlp_json *header, const vlp_safetensor_spec *spec, int64_t *offset) {
    int64_t bytes, end;
    VLP_TRY(spec_bytes(spec, &bytes));
    if (__builtin_add_overflow(*offset, bytes, &end))
        return VLP_FAIL(VLP_ERR_USAGE, "tensor \"%s\" has an impossible shape", spec->name);
    if (strcmp(spec->name, "__metadata__") == 0 || vlp_json_key(header, spec->name))
        return VLP_FAIL(VLP_ERR_USAGE, "tensor name \"%s\" is used twice or reserved", spec->name);
    vlp_json *entry = vlp_json_new_object(), *shape = vlp_json_new_array();
    vlp_json *offsets = vlp_json_new_array();
    for (int i = 0; i < spec->ndim; i++) vlp_json_append(shape, vlp_json_new_int(spec->shape[i]));
    vlp_json_append(offsets, vlp_json_new_int(*offset));
    vlp_json_append(offsets, vlp_json_new_int(end));
    vlp_json_set_string(entry, "dtype", vlp_st_dtype_name(spec->dtype));
    vlp_json_set(entry, "shape", shape);
    vlp_json_set(entry, "data_offsets", offsets);
    vlp_json_set(header, spec->name, entry);
    if (!vlp_json_key(header, spec->name))
        return VLP_FAIL(VLP_ERR_USAGE, "tensor name \"%s\" is not valid UTF-8", spec->name);
    *offset = end;
    return VLP_OK;
}

static vlp_status header_text(const vlp_safetensor_spec *specs, size_t n,
                              const vlp_st_pair *metadata, size_t pairs, vlp_buf *text) {
    vlp_json *header = vlp_json_new_object(), *meta = vlp_json_new_object();
    vlp_json_set_string(meta, "format", "pt");
    for (size_t i = 0; i < pairs; i++)
        vlp_json_set_string(meta, metadata[i].key, metadata[i].value);
    vlp_json_set(header, "__metadata__", meta);
    int64_t offset = 0;
    vlp_status status = VLP_OK;
    for (size_t i = 0; i < n && status == VLP_OK; i++)
        status = add_entry(header, &specs[i], &offset);
    if (status == VLP_OK) status = vlp_json_dump(header, 0, text);
    while (status == VLP_OK && text->len % 8 != 0) status = vlp_buf_puts(text, " ");
    vlp_json_free(header);
    return status;
}

/* Steps over the tensors that are complete, among them those without elements. */
static void advance(vlp_safetensors_writer *writer) {
    while (writer->left == 0 && writer->at < writer->count && ++writer->at < writer->count) {
        int64_t bytes = 0;
        VLP_ASSERT(spec_bytes(&writer->specs[writer->at], &bytes) == VLP_OK, "checked at begin");
        writer->left = (size_t)bytes;
    }
}

static vlp_status begin(vlp_safetensors_writer *writer, const char *path, const vlp_buf *text) {
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(text->len >> 8 * i);
    VLP_TRY(vlp_writer_open(&writer->out, path));
    VLP_TRY(vlp_writer_write(&writer->out, length, sizeof length));
    VLP_TRY(vlp_writer_write(&writer->out, text->data, text->len));
    if (writer->count) {
        int64_t bytes;
        VLP_TRY(spec_bytes(&writer->specs[0], &bytes));
        writer->left = (size_t)bytes;
        advance(writer);
    }
    return VLP_OK;
}

vlp_status vlp_safetensors_writer_begin(vlp_safetensors_writer **out, const char *path,
                                        const vlp_safetensor_spec *specs, size_t n,
                                        const vlp_st_pair *metadata, size_t pairs) {
    *out = NULL;
    vlp_buf text = {0};
    vlp_safetensors_writer *writer = NULL;
    vlp_status status;
    VLP_TRY_DONE(header_text(specs, n, metadata, pairs, &text));
    writer = vlp_alloc_zero(1, sizeof *writer);
    VLP_TRY_DONE(writer ? VLP_OK : VLP_ERR_MEMORY);
    writer->specs = specs;
    writer->count = n;
    VLP_TRY_DONE(begin(writer, path, &text));
    *out = writer;
    writer = NULL;
done:
    vlp_safetensors_writer_abandon(writer);
    vlp_buf_free(&text);
    return status == VLP_OK ? VLP_OK : vlp_fail_in(status, "%s", path);
}

vlp_status vlp_safetensors_writer_write(vlp_safetensors_writer *writer, const void *data,
                                        size_t bytes) {
    VLP_TRY(vlp_writer_write(&writer->out, data, bytes));
    while (bytes > 0) {
        VLP_ASSERT(writer->at < writer->count, "%zu bytes beyond the last tensor", bytes);
        size_t part = bytes < writer->left ? bytes : writer->left;
        writer->left -= part;
        bytes -= part;
        advance(writer);
    }
    return VLP_OK;
}

vlp_status vlp_safetensors_writer_real(vlp_safetensors_writer *writer, const vlp_real *values,
                                       int64_t n) {
    float piece[1024];
    for (int64_t at = 0; at < n;) {
        size_t count = n - at < (int64_t)VLP_COUNT(piece) ? (size_t)(n - at) : VLP_COUNT(piece);
        VLP_ASSERT(writer->at < writer->count && writer->specs[writer->at].dtype == VLP_ST_F32,
                   "the next tensor is not F32");
        for (size_t i = 0; i < count; i++) piece[i] = (float)values[at + (int64_t)i];
        VLP_TRY(vlp_safetensors_writer_write(writer, piece, count * sizeof *piece));
        at += (int64_t)count;
    }
    return VLP_OK;
}

vlp_status vlp_safetensors_writer_commit(vlp_safetensors_writer *writer) {
    VLP_ASSERT(writer->at == writer->count, "tensor \"%s\" lacks %zu bytes",
               writer->specs[writer->at].name, writer->left);
    vlp_status status = vlp_writer_commit(&writer->out);
    vlp_free(writer);
    return status;
}

void vlp_safetensors_writer_abandon(vlp_safetensors_writer *writer) {
    if (!writer) return;
    vlp_writer_abandon(&writer->out);
    vlp_free(writer);
}
