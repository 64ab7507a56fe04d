/* vlp: one program, one subcommand a file. */
#include "apps/commands.h"

#include "core/gemm.h"
#include "core/suggest.h"
#include "core/threads.h"

#include <stdio.h>
#include <string.h>

static const cli_command *const commands[] = {
#define VLP_COMMAND(name) &cmd_##name,
    VLP_COMMANDS(VLP_COMMAND)
#undef VLP_COMMAND
};

static void help(void) {
    puts("vlp " VLP_VERSION ": vision-language pre-training on ordinary CPUs\n\n"
         "Usage: vlp COMMAND ...        vlp COMMAND --help shows options and examples\n");
    for (size_t i = 0; i < VLP_COUNT(commands); i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    puts("\nTo begin:\n"
         "  vlp index pairs.db photos/\n"
         "  vlp pretrain vlp --size nano --data pairs.db --out run --max-minutes 30\n"
         "  vlp embed pairs.db --model run\n"
         "  vlp search pairs.db \"a red car\"");
}

int main(int argc, char **argv) {
    vlp_threads_settle(argv);
    vlp_status status = vlp_gemm_cure(argc, argv);
    bool diagnosing = argc > 1 && strcmp(argv[1], "doctor") == 0; /* says itself what is wrong */
    if (status != VLP_OK && !diagnosing) return cli_fail(status);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help();
        return cli_finish(argc < 2 ? EXIT_USAGE : EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("vlp " VLP_VERSION);
        return cli_finish(EXIT_DONE);
    }
    const char *known[VLP_COUNT(commands)];
    for (size_t i = 0; i < VLP_COUNT(commands); i++) {
        known[i] = commands[i]->name;
        if (strcmp(argv[1], known[i]) == 0) return cli_run(commands[i], argc - 1, argv + 1);
    }
    char hint[128];
    return cli_usage("unknown command %s%s; vlp --help lists them", argv[1],
                     vlp_suggest_text(argv[1], known, VLP_COUNT(commands), hint, sizeof hint));
}
