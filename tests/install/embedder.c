/* A program outside the project, on the installed library: the width of a model's vectors. */
#include <core/gemm.h>
#include <train/embedder.h>

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv) {
    vlp_embedder *embedder = NULL;
    vlp_status status = vlp_gemm_cure(argc, argv);
    if (status == VLP_OK) status = vlp_embedder_open(&embedder, argc > 1 ? argv[1] : "run", 1);
    if (status != VLP_OK) {
        fprintf(stderr, "%s\n", vlp_error());
        return 1;
    }
    printf("%" PRId64 "\n", vlp_embedder_width(embedder));
    vlp_embedder_free(embedder);
    return 0;
}
