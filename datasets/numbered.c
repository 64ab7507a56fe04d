#include "datasets/numbered.h"

#include "core/file.h"

#include <stdio.h>
#include <string.h>

/* %s the set, %0 the number in twelve digits, %n the number */
static const char *const names[] = {
    "COCO_%s_%0.jpg",
    "%s/COCO_%s_%0.jpg",
    "%0.jpg",
    "%s/%0.jpg",
    "%n.jpg",
    "VG_100K/%n.jpg",
    "VG_100K_2/%n.jpg",
    "images/%n.jpg",
    "images/VG_100K/%n.jpg",
    "images/VG_100K_2/%n.jpg",
    "%n.png",
    "%0.png",
};

static vlp_status fill(vlp_buf *out, const char *name, int64_t number, const char *set) {
    vlp_buf_clear(out);
    for (; *name; name++) {
        if (*name != '%') {
            VLP_TRY(vlp_buf_append(out, name, 1));
            continue;
        }
        name++;
        if (*name == 's') VLP_TRY(vlp_buf_puts(out, set));
        if (*name == '0') VLP_TRY(vlp_buf_printf(out, "%012lld", (long long)number));
        if (*name == 'n') VLP_TRY(vlp_buf_printf(out, "%lld", (long long)number));
    }
    return VLP_OK;
}

vlp_status vlp_numbered_name(vlp_numbered *numbered, const char *root, int64_t number,
                             const char *set, vlp_buf *out, bool *found) {
    vlp_buf path = {0};
    vlp_status status = VLP_OK;
    *found = false;
    int n = (int)VLP_COUNT(names);
    for (int i = 0; i < n && !*found; i++) {
        int at = (numbered->usual + i) % n;
        if (!set[0] && strstr(names[at], "%s")) continue;
        VLP_TRY_DONE(fill(out, names[at], number, set));
        VLP_TRY_DONE(vlp_path_join(&path, root, out->data));
        *found = vlp_path_exists(path.data);
        if (*found) numbered->usual = at;
    }
    if (!*found) VLP_TRY_DONE(fill(out, set[0] ? names[0] : names[4], number, set));
done:
    vlp_buf_free(&path);
    return status;
}
