#include "apps/commands.h"
#include "apps/report.h"

#include "datasets/index.h"

#include <stdio.h>

static const cli_flag flags[] = {
    {"--json", 0, NULL, "everything as one JSON object"},
    {NULL, 0, NULL, NULL},
};

static int run(const cli_args *args) {
    if (args->n_positional != 1) return cli_usage("stats needs one index: vlp stats pairs.db");
    vlp_json *json;
    vlp_status status = cli_index_stats(args->positional[0], &json);
    if (status != VLP_OK) return cli_fail(status);
    if (cli_has(args, "--json")) {
        cli_print_json(json);
        return EXIT_DONE;
    }
    cli_print_stats(args->positional[0], json, true);
    vlp_json_free(json);
    return EXIT_DONE;
}

const cli_command cmd_stats = {
    .name = "stats",
    .summary = "counts what an index holds",
    .usage = "DB [--json]",
    .details = "Images, captions and texts by split and source, caption lengths, image sizes,\n"
               "scripts, duplicates (also across splits) and what was skipped, by reason.",
    .examples = "  vlp stats pairs.db\n  vlp stats pairs.db --json\n",
    .flags = flags,
    .run = run,
};
