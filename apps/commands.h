/* The subcommands: `name` here is cmd_name, defined in apps/cmd_name.c. */
#ifndef VLP_APPS_COMMANDS_H
#define VLP_APPS_COMMANDS_H

#include "apps/cli.h"

#define VLP_COMMANDS(ROW)                                                                          \
    ROW(answer)                                                                                    \
    ROW(bench)                                                                                     \
    ROW(caption)                                                                                   \
    ROW(classify)                                                                                  \
    ROW(convert)                                                                                   \
    ROW(doctor)                                                                                    \
    ROW(embed)                                                                                     \
    ROW(eval)                                                                                      \
    ROW(finetune)                                                                                  \
    ROW(index)                                                                                     \
    ROW(info)                                                                                      \
    ROW(pretrain)                                                                                  \
    ROW(search)                                                                                    \
    ROW(stats)                                                                                     \
    ROW(tokenizer)

#define VLP_DECLARE_COMMAND(name) extern const cli_command cmd_##name;
VLP_COMMANDS(VLP_DECLARE_COMMAND)
#undef VLP_DECLARE_COMMAND

#endif
