/* vlp-corpus: the quick start's manifests from unpacked Debian packages. */
#include "core/file.h"
#include "tools/picture.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: vlp-corpus [options] PACKAGES OUT\n"
    "\n"
    "Reads the unpacked packages in PACKAGES/<package> and writes manifests and shrunken pictures\n"
    "into OUT. The same packages give the same bytes.\n"
    "\n"
    "  --size N      longest side of the pictures (default 256)\n"
    "  --held-out N  drawings each in val and test (default 530)\n"
    "  --groups FILE also writes \"group, image, caption\" lines, to check what shares a split\n"
    "  --help        this text\n"
    "\n"
    "example: vlp-corpus quickstart/packages quickstart/corpus\n";

typedef struct {
    const char *packages, *out, *groups;
    int size, held_out;
} options;

static int usage(const char *message) {
    fprintf(stderr, "vlp-corpus: %s; see vlp-corpus --help\n", message);
    return 2;
}

static bool read_number(const char *text, int low, int high, int *out) {
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high) return false;
    *out = (int)value;
    return true;
}

static vlp_status make_corpus(const options *o, vlp_buf *report) {
    corpus_list list = {0};
    corpus_split_counts counts;
    vlp_buf images = {0};
    vlp_status status = VLP_OK;
    VLP_TRY_DONE(vlp_path_join(&images, o->out, "images"));
    VLP_TRY_DONE(corpus_add_clipart(&list, o->packages));
    VLP_TRY_DONE(corpus_add_stamps(&list, o->packages));
    VLP_TRY_DONE(corpus_add_drawings(&list, o->packages));
    VLP_TRY_DONE(corpus_add_emoji(&list, o->packages));
    VLP_TRY_DONE(corpus_measure(&list, images.data, o->size));
    VLP_TRY_DONE(corpus_split(&list, o->held_out, &counts));
    if (o->groups) VLP_TRY_DONE(corpus_write_groups(&list, o->groups));
    status = corpus_write(&list, o->out, &counts, report);
done:
    corpus_free(&list);
    vlp_buf_free(&images);
    return status;
}

int main(int argc, char **argv) {
    static const struct option known[] = {{"size", required_argument, NULL, 's'},
                                          {"held-out", required_argument, NULL, 'n'},
                                          {"groups", required_argument, NULL, 'g'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    options o = {.size = 256, .held_out = 530};
    for (int c; (c = getopt_long(argc, argv, "h", known, NULL)) != -1;) {
        if (c == 'h') return fputs(help, stdout) < 0;
        if (c == 's' && !read_number(optarg, 16, 4096, &o.size))
            return usage("--size wants a number from 16 to 4096");
        if (c == 'n' && !read_number(optarg, 0, 2000, &o.held_out))
            return usage("--held-out wants a number from 0 to 2000");
        if (c == 'g') o.groups = optarg;
        if (c == '?') return 2;
    }
    if (argc - optind != 2) return usage("wants two folders, PACKAGES and OUT");
    o.packages = argv[optind];
    o.out = argv[optind + 1];
    vlp_buf report = {0};
    vlp_status status = make_corpus(&o, &report);
    if (status == VLP_OK)
        fputs(report.data, stdout);
    else
        fprintf(stderr, "vlp-corpus: %s\n", vlp_error());
    vlp_buf_free(&report);
    return status == VLP_OK ? 0 : 2;
}
