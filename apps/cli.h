/* The command line: tables of flags, one help style, one way to print.
 *
 * A subcommand is a row of the table in main.c: name, one-line summary, usage, examples, flags and
 * a run function that returns an exit code. */
#ifndef VLP_APPS_CLI_H
#define VLP_APPS_CLI_H

#include "core/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit codes. */
enum { EXIT_DONE = 0, EXIT_NOTHING = 1, EXIT_USAGE = 2, EXIT_SKIPPED = 3, EXIT_STOPPED = 130 };

typedef struct {
    const char *name;  /* "--out" */
    char letter;       /* 'o', or 0 */
    const char *value; /* "DIR", or NULL for a switch */
    const char *help;  /* one line */
} cli_flag;

/* Two flags: that contradict each other, or of which the first means nothing without the second. */
typedef struct {
    const char *first, *second;
} cli_pair;

enum { CLI_MAX_FLAGS = 64, CLI_MAX_VALUES = 256 };

/* A parsed command line; texts are borrowed from argv. */
typedef struct {
    const cli_flag *flags;
    struct {
        const char *name, *value;
    } given[CLI_MAX_VALUES];
    int n_given;
    const char **positional;
    int n_positional;
} cli_args;

typedef struct {
    const char *name, *summary;
    const char *usage;               /* after "vlp NAME " */
    const char *details;             /* a paragraph, or NULL */
    const char *examples;            /* real command lines, one a line */
    const cli_flag *flags;           /* ends with name NULL; the common ones are added */
    const cli_pair *clashes, *needs; /* end with first NULL; or NULL */
    bool dashed_texts; /* "-red" is a text, not an option: one dash and more than one letter */
    int (*run)(const cli_args *args);
} cli_command;

/* Whether the flag was given; its last value (or fallback); the i-th value of a repeatable flag, or
 * NULL beyond the last. */
bool cli_has(const cli_args *args, const char *name);
const char *cli_text(const cli_args *args, const char *name, const char *fallback);
const char *cli_nth(const cli_args *args, const char *name, int i);
/* Whole and real numbers in [least, most]; an error names the flag. */
vlp_status cli_int(const cli_args *args, const char *name, int64_t fallback, int64_t least,
                   int64_t most, int64_t *out);
vlp_status cli_double(const cli_args *args, const char *name, double fallback, double least,
                      double most, double *out);

/* Where a command has several jobs and a flag's help begins with the ones it belongs to ("train,
 * load: ..."): refuses flags of others than `job`. */
vlp_status cli_check_job(const cli_args *args, const char *job);

/* Prints the message of a failed status as one line to stderr and returns the exit code. */
int cli_fail(vlp_status status);
/* A usage error of the command's own; returns EXIT_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code, after the last of stdout is written: output that was lost is an error. */
int cli_finish(int code);

/* Parses and runs; argv[0] is the command's name. */
int cli_run(const cli_command *command, int argc, char **argv);
void cli_print_help(const cli_command *command);

/* SIGINT and SIGTERM set this; long work watches it. */
extern volatile int cli_stop;
void cli_watch_signals(void);

/* Whether stderr is a terminal that takes a live line, and whether it may be coloured (NO_COLOR).
 */
bool cli_live(void);
bool cli_colour(void);
bool cli_quiet(void);
/* Replaces the live line (terminals), or prints it every few seconds (elsewhere); NULL ends it. */
void cli_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_progress_end(void);

/* "3.2 GiB", "1.2 M", "4 min 10 s" into out. */
const char *cli_bytes(double bytes, char out[32]);
const char *cli_count(double count, char out[32]);
const char *cli_duration(double seconds, char out[32]);

/* The most memory that the process has had, in millions of bytes. */
double cli_peak_rss_mb(void);

/* Prints one line of JSON to stdout and frees the value. */
struct json_t;
void cli_print_json(struct json_t *value);
/* A field of a CSV row, quoted where it must be. */
void cli_print_csv(const char *text);

/* Lines of a text file, or the parts of "a,b,c" (or one template with {}) when there is no such
 * file. Free with cli_list_free. */
typedef struct {
    char **items;
    int64_t count;
} cli_list;
vlp_status cli_list_read(cli_list *out, const char *file_or_commas);
/* The same for class names, which must differ from one another. */
vlp_status cli_classes_read(cli_list *out, const char *file_or_commas);
void cli_list_free(cli_list *list);

#endif
