#include "core/checkpoint.h"

#include "core/kernels.h"
#include "core/memory.h"
#include "core/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const vlp_name_row identity = {0};

/* Matches `name` against a pattern and writes the other pattern with the digits filled in. */
static bool match(const char *pattern, const char *name, char digits[8][16]) {
    int holes = 0;
    while (*pattern) {
        if (pattern[0] != '{') {
            if (*pattern++ != *name++) return false;
            continue;
        }
        int n = 0;
        while (isdigit((unsigned char)*name) && n < 15) digits[holes][n++] = *name++;
        if (n == 0 || ++holes > 7) return false;
        digits[holes - 1][n] = '\0';
        pattern += 2;
    }
    return *name == '\0';
}

static void fill_in(const char *prefix, const char *pattern, char digits[8][16],
                    char out[VLP_NAME_BYTES]) {
    size_t at = (size_t)snprintf(out, VLP_NAME_BYTES, "%s", prefix);
    int hole = 0;
    while (*pattern && at + 16 < VLP_NAME_BYTES) {
        if (pattern[0] != '{') {
            out[at++] = *pattern++;
            continue;
        }
        at += (size_t)snprintf(out + at, 16, "%s", digits[hole++]);
        pattern += 2;
    }
    out[at] = '\0';
}

void vlp_name_map_add(vlp_name_map *map, const vlp_name_row *rows, size_t count, const char *theirs,
                      const char *ours) {
    vlp_name_map_add_layers(map, rows, count, theirs, ours, 0, INT64_MAX);
}

void vlp_name_map_add_layers(vlp_name_map *map, const vlp_name_row *rows, size_t count,
                             const char *theirs, const char *ours, int64_t first, int64_t end) {
    VLP_ASSERT(map->count < VLP_NAME_TABLES, "a name map of more than %d tables", VLP_NAME_TABLES);
    map->tables[map->count].rows = rows;
    map->tables[map->count].count = count;
    map->tables[map->count].theirs = theirs;
    map->tables[map->count].ours = ours;
    map->tables[map->count].first = first;
    map->tables[map->count++].end = end;
}

/* One side of a table's row; the layers that it holds, and how the other side counts them. */
typedef struct {
    const char *prefix, *name;
    int64_t first, end, shift;
} side;

static side side_of(const vlp_name_map *map, int t, const vlp_name_row *row, bool theirs) {
    int64_t first = map->tables[t].first, end = map->tables[t].end;
    return theirs ? (side){map->tables[t].theirs, row->theirs, first, end, -first}
                  : (side){map->tables[t].ours, row->ours, 0, end - first, first};
}

/* The other side's name for `name`; false when the row does not fit. */
static bool translate(side from, side to, const char *name, char out[VLP_NAME_BYTES]) {
    char digits[8][16];
    size_t n = strlen(from.prefix);
    if (strncmp(name, from.prefix, n) != 0 || !match(from.name, name + n, digits)) return false;
    if (from.shift != 0 || from.end != INT64_MAX) {
        bool numbered = strchr(from.name, '{');
        int64_t layer = numbered ? strtoll(digits[0], NULL, 10) : from.first;
        if (layer < from.first || layer >= from.end) return false;
        if (numbered) snprintf(digits[0], sizeof digits[0], "%d", (int)(layer + from.shift));
    }
    if (to.name) fill_in(to.prefix, to.name, digits, out);
    return true;
}

const vlp_name_row *vlp_name_find(const vlp_name_map *map, const char *theirs,
                                  char ours[VLP_NAME_BYTES]) {
    if (map->count == 0) {
        snprintf(ours, VLP_NAME_BYTES, "%s", theirs);
        return &identity;
    }
    for (int t = 0; t < map->count; t++)
        for (size_t i = 0; i < map->tables[t].count; i++) {
            const vlp_name_row *row = &map->tables[t].rows[i];
            if (translate(side_of(map, t, row, true), side_of(map, t, row, false), theirs, ours))
                return row;
        }
    return NULL;
}

/* The first name of theirs that would fill `ours`; ours itself when there is none. */
static const char *name_of_theirs(const vlp_name_map *map, const char *ours,
                                  char theirs[VLP_NAME_BYTES]) {
    for (int t = 0; t < map->count; t++)
        for (size_t i = 0; i < map->tables[t].count; i++) {
            const vlp_name_row *row = &map->tables[t].rows[i];
            if (row->ours &&
                translate(side_of(map, t, row, false), side_of(map, t, row, true), ours, theirs))
                return theirs;
        }
    return ours;
}

int vlp_name_targets(const vlp_name_map *map, const char *ours,
                     vlp_name_target out[VLP_NAME_TARGETS]) {
    int n = 0, parts = 1;
    if (map->count == 0) {
        snprintf(out->name, sizeof out->name, "%s", ours);
        out->row = &identity;
        return 1;
    }
    for (int t = 0; t < map->count && n < parts; t++)
        for (size_t i = 0; i < map->tables[t].count && n < parts; i++) {
            const vlp_name_row *row = &map->tables[t].rows[i];
            if (!row->ours || row->part != n || (n > 0 && row->parts != parts) ||
                row->parts > VLP_NAME_TARGETS ||
                !translate(side_of(map, t, row, false), side_of(map, t, row, true), ours,
                           out[n].name))
                continue;
            parts = row->parts ? row->parts : 1;
            out[n++].row = row;
        }
    return n == parts ? n : 0;
}

const char *vlp_name_prefix(const vlp_safetensors *file, const char *const *prefixes,
                            const char *name) {
    char full[VLP_NAME_BYTES];
    for (; *prefixes; prefixes++) {
        snprintf(full, sizeof full, "%s%s", *prefixes, name);
        if (vlp_safetensors_find(file, full)) return *prefixes;
    }
    return NULL;
}

void vlp_name_copy(const vlp_name_row *row, const vlp_tensor *shape, vlp_real *ours,
                   vlp_real *theirs, bool to_theirs) {
    int64_t n = vlp_numel(shape) / (row->parts ? row->parts : 1);
    vlp_real *base = ours + n * row->part;
    int64_t cols = vlp_col_count(shape), rows = n / (cols ? cols : 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = row->transpose ? (i % cols) * rows + i / cols : i;
        if (to_theirs)
            theirs[j] = base[i];
        else
            base[i] = theirs[j];
    }
}

/* Axes of length 1 dropped. */
static int squeeze(int ndim, const int64_t *shape, int64_t *out) {
    int n = 0;
    for (int i = 0; i < ndim; i++)
        if (shape[i] != 1) out[n++] = shape[i];
    return n;
}

static bool shapes_agree(const vlp_name_row *row, const vlp_tensor *ours, const vlp_safetensor *t) {
    int64_t parts = row->parts ? row->parts : 1;
    if (t->numel * parts != vlp_numel(ours)) return false;
    int64_t mine[VLP_MAX_DIMS], other[VLP_SAFETENSORS_DIMS];
    int64_t shape[VLP_MAX_DIMS] = {0};
    for (int i = 0; i < ours->ndim; i++) shape[i] = ours->shape[i];
    if (ours->ndim > 0) shape[0] /= parts;
    int n = squeeze(ours->ndim, shape, mine), m = squeeze(t->ndim, t->shape, other);
    if (row->transpose) return n == m && (n < 2 || (mine[0] == other[1] && mine[1] == other[0]));
    if (n == m) return memcmp(mine, other, (size_t)n * sizeof *mine) == 0;
    return n == 0 || m == 0 || mine[0] == other[0];
}

static vlp_status mis_shaped(const vlp_tensor *ours, const vlp_name_row *row,
                             const vlp_safetensor *t) {
    char have[96] = "", want[96] = "";
    for (int i = 0; i < t->ndim; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%lld", i ? "," : "",
                 (long long)t->shape[i]);
    for (int i = 0; i < ours->ndim; i++)
        snprintf(want + strlen(want), sizeof want - strlen(want), "%s%lld", i ? "," : "",
                 (long long)(ours->shape[i] / (i == 0 && row->parts ? row->parts : 1)));
    return VLP_FAIL(
        VLP_ERR_FORMAT,
        "%s: tensor \"%s\" has shape [%s], [%s] is wanted; does config.json belong to it?", t->file,
        t->name, have, want);
}

typedef struct {
    vlp_params *params;
    const vlp_safetensors *file;
    const vlp_name_map *map;
    unsigned *missing; /* per parameter: bit k = part k has not been seen */
    bool *seen;        /* per parameter: some tensor of it has */
    vlp_real *scratch; /* [room] */
    int64_t room;
} loader;

static int index_of(const vlp_params *params, const char *name) {
    for (int i = 0; i < params->count; i++)
        if (strcmp(params->items[i]->name, name) == 0) return i;
    return -1;
}

static vlp_status unexpected(const vlp_params *params, const vlp_safetensor *t) {
    vlp_status status = VLP_ERR_FORMAT;
    const char **known = vlp_alloc((size_t)params->count * sizeof *known);
    if (!known) return VLP_ERR_MEMORY;
    for (int i = 0; i < params->count; i++) known[i] = params->items[i]->name;
    char hint[VLP_NAME_BYTES + 32];
    VLP_FAIL(status, "%s: unexpected tensor \"%s\"%s", t->file, t->name,
             vlp_suggest_text(t->name, known, (size_t)params->count, hint, sizeof hint));
    vlp_free(known);
    return status;
}

static bool starts_with(const char *name, const char *prefix) {
    return prefix && strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Piece by piece, so that file and parameters do not lie in memory twice. */
static vlp_status read_into(const loader *l, const vlp_safetensor *t, vlp_real *out) {
    enum { PIECE = 1 << 20 };
    for (int64_t at = 0; at < t->numel; at += PIECE) {
        int64_t n = t->numel - at < PIECE ? t->numel - at : PIECE;
        VLP_TRY(vlp_safetensors_read_part(t, at, n, out + at));
        vlp_safetensors_release(l->file, t, at, n);
        if (!vlp_kernels_get()->all_finite(n, out + at))
            return VLP_FAIL(
                VLP_ERR_NUMERIC,
                "%s: tensor \"%s\" holds values that are not finite; the file is damaged, "
                "or its training had failed",
                t->file, t->name);
    }
    return VLP_OK;
}

static vlp_status read_scratch(loader *l, const vlp_safetensor *t) {
    if (t->numel > l->room) {
        vlp_real *larger = vlp_realloc(l->scratch, (size_t)t->numel * sizeof *larger);
        if (!larger) return VLP_ERR_MEMORY;
        l->scratch = larger;
        l->room = t->numel;
    }
    return read_into(l, t, l->scratch);
}

/* A second tensor for what is filled already: they are tied here, so they must agree. */
static vlp_status check_tied(loader *l, const vlp_name_row *row, const vlp_param *param,
                             const vlp_safetensor *t) {
    vlp_real *other = vlp_alloc((size_t)t->numel * sizeof *other);
    if (!other) return VLP_ERR_MEMORY;
    vlp_name_copy(row, &param->tensor, param->tensor.data, other, true);
    vlp_status status = read_scratch(l, t);
    bool same =
        status == VLP_OK && memcmp(l->scratch, other, (size_t)t->numel * sizeof *other) == 0;
    vlp_free(other);
    if (same || status != VLP_OK) return status;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: \"%s\" differs from the other tensor for \"%s\"; here they are tied",
                    t->file, t->name, param->name);
}

static vlp_status convert(loader *l, const vlp_name_row *row, int i, const vlp_safetensor *t) {
    const vlp_tensor *ours = &l->params->items[i]->tensor;
    vlp_status status = row->convert ? row->convert(t, ours, ours->data) : VLP_ERR_UNSUPPORTED;
    if (status == VLP_ERR_UNSUPPORTED) return mis_shaped(ours, row, t);
    l->seen[i] = true;
    l->missing[i] = 0;
    return status;
}

static vlp_status fill(loader *l, const vlp_name_row *row, int i, const vlp_safetensor *t) {
    vlp_param *param = l->params->items[i];
    if (!shapes_agree(row, &param->tensor, t)) return convert(l, row, i, t);
    if (!l->seen[i]) l->missing[i] = row->parts ? (1u << row->parts) - 1 : 1;
    l->seen[i] = true;
    unsigned bit = 1u << row->part;
    if (!(l->missing[i] & bit)) return check_tied(l, row, param, t);
    l->missing[i] &= ~bit;
    if (!row->transpose)
        return read_into(l, t, vlp_real_data(&param->tensor) + t->numel * row->part);
    VLP_TRY(read_scratch(l, t));
    vlp_name_copy(row, &param->tensor, param->tensor.data, l->scratch, false);
    return VLP_OK;
}

static vlp_status load_one(loader *l, const vlp_safetensor *t, const char *optional) {
    char ours[VLP_NAME_BYTES];
    const vlp_name_row *row = vlp_name_find(l->map, t->name, ours);
    if (row && row != &identity && !row->ours) return VLP_OK;
    int i = row ? index_of(l->params, ours) : -1;
    if (i >= 0) return fill(l, row, i, t);
    return starts_with(row ? ours : t->name, optional) ? VLP_OK : unexpected(l->params, t);
}

static vlp_status missing(const loader *l, int i) {
    char theirs[VLP_NAME_BYTES];
    const char *ours = l->params->items[i]->name, *name = name_of_theirs(l->map, ours, theirs);
    const vlp_safetensor *t;
    vlp_status status = vlp_safetensors_get(l->file, name, &t);
    if (status != VLP_OK) return status;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: parameter \"%s\" is incomplete", t->file, ours);
}

static vlp_status load_all(loader *l, const char *optional) {
    for (size_t i = 0; i < vlp_safetensors_count(l->file); i++)
        VLP_TRY(load_one(l, vlp_safetensors_at(l->file, i), optional));
    for (int i = 0; i < l->params->count; i++)
        if ((!l->seen[i] || l->missing[i]) && !starts_with(l->params->items[i]->name, optional))
            return missing(l, i);
    return VLP_OK;
}

vlp_status vlp_params_load(vlp_params *params, const vlp_safetensors *file, vlp_name_map map,
                           const char *optional) {
    size_t count = (size_t)params->count;
    loader l = {.params = params,
                .file = file,
                .map = &map,
                .missing = vlp_alloc_zero(count, sizeof *l.missing),
                .seen = vlp_alloc_zero(count, sizeof *l.seen)};
    vlp_status status = l.missing && l.seen ? load_all(&l, optional) : VLP_ERR_MEMORY;
    vlp_free(l.missing);
    vlp_free(l.seen);
    vlp_free(l.scratch);
    vlp_params_changed(params);
    return status;
}

static vlp_status write_all(const vlp_params *params, const vlp_real *values, const char *path,
                            const vlp_safetensor_spec *specs) {
    vlp_safetensors_writer *writer;
    VLP_TRY(vlp_safetensors_writer_begin(&writer, path, specs, (size_t)params->count, NULL, 0));
    for (int i = 0; i < params->count; i++) {
        const vlp_param *p = params->items[i];
        vlp_status status =
            vlp_safetensors_writer_real(writer, values + p->offset, vlp_numel(&p->tensor));
        if (status == VLP_OK) continue;
        vlp_safetensors_writer_abandon(writer);
        return status;
    }
    return vlp_safetensors_writer_commit(writer);
}

vlp_status vlp_params_save(const vlp_params *params, const vlp_real *values, const char *path) {
    vlp_safetensor_spec *specs = vlp_alloc_zero((size_t)params->count, sizeof *specs);
    if (!specs) return VLP_ERR_MEMORY;
    for (int i = 0; i < params->count; i++) {
        const vlp_param *p = params->items[i];
        specs[i] =
            (vlp_safetensor_spec){.name = p->name, .dtype = VLP_ST_F32, .ndim = p->tensor.ndim};
        for (int d = 0; d < p->tensor.ndim; d++) specs[i].shape[d] = p->tensor.shape[d];
    }
    vlp_status status = write_all(params, values, path, specs);
    vlp_free(specs);
    return status;
}
