/* The options of commands that write text. */
#ifndef VLP_APPS_GENERATE_FLAGS_H
#define VLP_APPS_GENERATE_FLAGS_H

#include "apps/cli.h"
#include "fusion/generate.h"

/* Rows of a command's flags; its own least and most tokens, as text. */
#define CLI_GENERATE_FLAGS(least, most)                                                            \
    {"--beams", 0, "N", "texts that are followed at a time; 1 = the most probable token (3)"},     \
        {"--sample", 0, NULL, "draw each token instead"},                                          \
        {"--top-k", 0, "K", "of the K most probable tokens (all)"},                                \
        {"--top-p", 0, "P", "of the fewest tokens that have probability P together (0.9)"},        \
        {"--temperature", 0, "T", "above 1 more even, below 1 less (1)"},                          \
        {"--seed", 0, "N", "of what is drawn (0)"},                                                \
        {"--min-length", 0, "N", "least tokens (" least ")"},                                      \
        {"--max-length", 0, "N", "most tokens (" most ")"},                                        \
        {"--length-penalty", 0, "X", "beams compare log p / length^X (1)"}, {                      \
        "--repetition-penalty", 0, "X", "above 1: tokens come again less often (1)"                \
    }

/* What was given changes *options; contradictions are VLP_ERR_USAGE. */
vlp_status cli_generate(const cli_args *args, vlp_generate_options *options);

#endif
