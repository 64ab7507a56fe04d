#include "apps/generate_flags.h"

#include <stddef.h>

static vlp_status need_sampling(const cli_args *args) {
    static const char *const names[] = {"--top-k", "--top-p", "--temperature", "--seed"};
    for (size_t i = 0; i < VLP_COUNT(names) && !cli_has(args, "--sample"); i++)
        if (cli_has(args, names[i]))
            return VLP_FAIL(VLP_ERR_USAGE, "%s is about sampling; add --sample", names[i]);
    if (cli_has(args, "--sample") && cli_has(args, "--beams"))
        return VLP_FAIL(VLP_ERR_USAGE, "--sample draws one text; it has no --beams");
    return VLP_OK;
}

vlp_status cli_generate(const cli_args *args, vlp_generate_options *o) {
    int64_t seed;
    VLP_TRY(need_sampling(args));
    o->sample = cli_has(args, "--sample");
    if (o->sample) {
        o->beams = 1;
        o->top_p = 0.9;
    }
    VLP_TRY(cli_int(args, "--beams", o->beams, 1, 64, &o->beams));
    VLP_TRY(cli_int(args, "--top-k", o->top_k, 1, 10000000, &o->top_k));
    VLP_TRY(cli_double(args, "--top-p", o->top_p, 1e-6, 1, &o->top_p));
    VLP_TRY(cli_double(args, "--temperature", o->temperature, 1e-3, 1000, &o->temperature));
    VLP_TRY(cli_int(args, "--seed", 0, 0, INT64_MAX, &seed));
    VLP_TRY(cli_int(args, "--min-length", o->min_length, 0, 1000000, &o->min_length));
    VLP_TRY(cli_int(args, "--max-length", o->max_length, 2, 1000000, &o->max_length));
    VLP_TRY(cli_double(args, "--length-penalty", o->length_penalty, -10, 10, &o->length_penalty));
    VLP_TRY(cli_double(args, "--repetition-penalty", o->repetition_penalty, 0.01, 100,
                       &o->repetition_penalty));
    o->seed = (uint64_t)seed;
    if (o->min_length <= o->max_length) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "--min-length %lld is above --max-length %lld",
                    (long long)o->min_length, (long long)o->max_length);
}
