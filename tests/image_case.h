/* Files of tests/data/images and comparisons of pixels, for the vision tests. */
#ifndef VLP_TESTS_IMAGE_CASE_H
#define VLP_TESTS_IMAGE_CASE_H

#include "core/file.h"
#include "vision/image.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define IMAGES VLP_TESTS_DIR "/data/images/"

static inline void read_case(vlp_buf *buf, const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, IMAGES "%s/%s", folder, name);
    vlp_buf_clear(buf);
    if (vlp_file_read(path, 0, buf) != VLP_OK) fail_msg("%s", vlp_error());
}

static inline void decode_case(vlp_image *out, const char *folder, const char *name,
                               const vlp_decode_options *options) {
    vlp_buf file = {0};
    read_case(&file, folder, name);
    if (vlp_image_decode(out, (const uint8_t *)file.data, file.len, options) != VLP_OK)
        fail_msg("%s %s", name, vlp_error());
    vlp_buf_free(&file);
}

/* expected/FILE.KIND.png into out; false when there is no such file. */
static inline bool expected_case(vlp_image *out, const char *name, const char *kind) {
    char file[256], path[512];
    snprintf(file, sizeof file, "%s.%s.png", name, kind);
    snprintf(path, sizeof path, IMAGES "expected/%s", file);
    if (!vlp_path_exists(path)) return false;
    decode_case(out, "expected", file, NULL);
    return true;
}

static inline int max_difference(const vlp_image *a, const vlp_image *b) {
    if (a->width != b->width || a->height != b->height) return 256;
    int worst = 0;
    for (size_t i = 0; i < (size_t)a->width * (size_t)a->height * 3; i++) {
        int d = abs(a->pixels[i] - b->pixels[i]);
        if (d > worst) worst = d;
    }
    return worst;
}

static inline void assert_same_pixels(const vlp_image *a, const vlp_image *b, const char *name,
                                      const char *kind) {
    int worst = max_difference(a, b);
    if (worst != 0)
        fail_msg("%s %s: %d x %d against %d x %d, largest difference %d", name, kind, a->width,
                 a->height, b->width, b->height, worst);
}

/* Calls visit with every file name of the folder, in no order. Returns how many. */
static inline int for_each_case(const char *folder, void (*visit)(const char *name)) {
    char path[512];
    snprintf(path, sizeof path, IMAGES "%s", folder);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        visit(e->d_name);
        count++;
    }
    closedir(dir);
    return count;
}

#endif
