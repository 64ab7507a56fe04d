#include "train/metrics.h"

#include "core/file.h"
#include "core/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

struct vlp_metrics {
    FILE *file;
    char *path;
    char buffer[BUFFER];
};

/* The length of the complete lines with step <= last. */
static size_t keep_until(const vlp_buf *text, int64_t last) {
    size_t at = 0;
    while (at < text->len) {
        const char *end = memchr(text->data + at, '\n', text->len - at);
        if (!end) break;
        long long step = -1;
        if (sscanf(text->data + at, "{\"step\":%lld", &step) != 1 || step > last) break;
        at = (size_t)(end - text->data) + 1;
    }
    return at;
}

static vlp_status trim(const char *path, int64_t last) {
    vlp_buf text = {0};
    vlp_status status = VLP_OK;
    if (last >= 0 && vlp_path_exists(path)) status = vlp_file_read(path, 0, &text);
    size_t keep = status == VLP_OK ? keep_until(&text, last) : 0;
    if (status == VLP_OK) status = vlp_file_write(path, text.data, keep);
    vlp_buf_free(&text);
    return status;
}

vlp_status vlp_metrics_open(vlp_metrics **out, const char *path, int64_t last_step) {
    *out = NULL;
    VLP_TRY(trim(path, last_step));
    vlp_metrics *m = vlp_alloc_zero(1, sizeof *m);
    if (!m) return VLP_ERR_MEMORY;
    m->path = vlp_strdup(path);
    m->file = m->path ? fopen(path, "ae") : NULL;
    if (!m->file) {
        vlp_status status =
            m->path ? VLP_FAIL(VLP_ERR_IO, "cannot append to %s: %s", path, strerror(errno))
                    : VLP_ERR_MEMORY;
        vlp_metrics_close(m);
        return status;
    }
    setvbuf(m->file, m->buffer, _IOFBF, sizeof m->buffer);
    *out = m;
    return VLP_OK;
}

static void number(FILE *f, const char *before, double value) {
    if (isfinite(value))
        fprintf(f, "%s%.9g", before, value);
    else
        fprintf(f, "%snull", before);
}

static void named(FILE *f, const char *key, const vlp_train_progress *p, const double *values) {
    fprintf(f, ",\"%s\":{", key);
    for (int i = 0; i < p->n_losses; i++) {
        fprintf(f, "%s\"%s\":", i ? "," : "", p->names[i]);
        number(f, "", values[i]);
    }
    fputc('}', f);
}

static vlp_status checked(vlp_metrics *m) {
    if (!ferror(m->file)) return VLP_OK;
    return VLP_FAIL(VLP_ERR_IO, "cannot write %s: %s", m->path, strerror(errno));
}

vlp_status vlp_metrics_step(vlp_metrics *m, const vlp_train_progress *p) {
    FILE *f = m->file;
    fprintf(f, "{\"step\":%lld", (long long)p->step);
    number(f, ",\"epoch\":", p->epoch);
    number(f, ",\"loss\":", p->loss);
    named(f, "losses", p, p->losses);
    named(f, "chance", p, p->chance);
    number(f, ",\"lr\":", p->lr);
    number(f, ",\"grad_norm\":", p->grad_norm);
    number(f, ",\"logit_scale\":", p->logit_scale);
    number(f, ",\"pairs_per_s\":", p->pairs_per_s);
    number(f, ",\"data_wait\":", p->data_wait);
    fputs("}\n", f);
    return checked(m);
}

static void recalls(FILE *f, const char *key, const double *values) {
    fprintf(f, "\"%s\":{", key);
    for (int i = 0; i < VLP_RECALL_LEVELS; i++)
        fprintf(f, "%s\"R@%d\":%.9g", i ? "," : "", vlp_recall_at[i], values[i]);
    fputc('}', f);
}

vlp_status vlp_metrics_eval(vlp_metrics *m, int64_t step, const vlp_retrieval *r) {
    fprintf(m->file, "{\"step\":%lld,\"eval\":{\"images\":%lld,\"captions\":%lld,", (long long)step,
            (long long)r->images, (long long)r->captions);
    recalls(m->file, "image_to_text", r->image_to_text);
    fputc(',', m->file);
    recalls(m->file, "text_to_image", r->text_to_image);
    fputs("}}\n", m->file);
    return checked(m);
}

vlp_status vlp_metrics_eval_loss(vlp_metrics *m, int64_t step, double loss) {
    fprintf(m->file, "{\"step\":%lld,\"eval\":{\"loss\":%.6f}}\n", (long long)step, loss);
    return checked(m);
}

vlp_status vlp_metrics_sync(vlp_metrics *m) {
    if (fflush(m->file) != 0 || fsync(fileno(m->file)) != 0)
        return VLP_FAIL(VLP_ERR_IO, "cannot write %s: %s", m->path, strerror(errno));
    return VLP_OK;
}

void vlp_metrics_close(vlp_metrics *m) {
    if (!m) return;
    if (m->file) fclose(m->file);
    vlp_free(m->path);
    vlp_free(m);
}
