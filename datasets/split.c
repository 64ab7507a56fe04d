#include "datasets/split.h"

#include "core/rng.h"

#include <stdio.h>
#include <string.h>

vlp_status vlp_split_parse(vlp_split_shares *out, const char *text) {
    *out = (vlp_split_shares){0};
    if (!text) return VLP_OK;
    double share[3];
    char end;
    bool three = sscanf(text, "%lf,%lf,%lf%c", &share[0], &share[1], &share[2], &end) == 3;
    for (int i = 0; i < 3 && three; i++) three = share[i] >= 0 && share[i] < 1e9;
    double sum = three ? share[0] + share[1] + share[2] : 0;
    if (!(sum > 0))
        return VLP_FAIL(VLP_ERR_USAGE,
                        "--split-hash \"%s\": give three shares for train,val,test, as 90,5,5",
                        text);
    if (sum < 99.999 || sum > 100.001)
        return VLP_FAIL(VLP_ERR_USAGE,
                        "--split-hash \"%s\": the shares make %g, not 100; for instance 90,5,5",
                        text, sum);
    *out = (vlp_split_shares){true, {share[0] / sum, (share[0] + share[1]) / sum}};
    return VLP_OK;
}

const char *vlp_split_of(const vlp_split_shares *shares, vlp_hash hash) {
    vlp_rng rng = vlp_rng_at(hash.high, VLP_RNG_SPLIT, 0, hash.low);
    double u = vlp_rng_double(&rng);
    return u < shares->edge[0] ? "train" : u < shares->edge[1] ? "val" : "test";
}

int vlp_split_rank(const char *split) {
    static const struct {
        const char *name;
        int rank;
    } ranks[] = {{"train", 0},      {"val", 2}, {"valid", 2},
                 {"validation", 2}, {"dev", 2}, {"test", 3}};
    for (size_t i = 0; i < VLP_COUNT(ranks); i++)
        if (strcmp(split, ranks[i].name) == 0) return ranks[i].rank;
    return 1;
}
