#include "apps/cli.h"

#include "apps/outputs.h"

#include "core/cpu.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/product_backend.h"
#include "core/suggest.h"
#include "core/threads.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_flag common[] = {
    {"--threads", 0, "N", "threads to compute with (default: all processors)"},
    {"--verbose", 'v', NULL, "say more"},
    {"--quiet", 'q', NULL, "errors only"},
    {"--help", 'h', NULL, "this text"},
    {NULL, 0, NULL, NULL},
};

volatile int cli_stop;
static bool quiet;

static const cli_flag *find_in(const cli_flag *flags, const char *name, size_t len, char letter) {
    for (; flags && flags->name; flags++) {
        if (letter && flags->letter == letter) return flags;
        if (!letter && strlen(flags->name) == len && strncmp(flags->name, name, len) == 0)
            return flags;
    }
    return NULL;
}

static const cli_flag *find_flag(const cli_flag *own, const char *name, size_t len, char letter) {
    const cli_flag *flag = find_in(own, name, len, letter);
    return flag ? flag : find_in(common, name, len, letter);
}

int cli_usage(const char *format, ...) {
    va_list args;
    cli_progress_end();
    fputs("vlp: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

int cli_fail(vlp_status status) {
    cli_progress_end();
    fprintf(stderr, "vlp: %s\n", vlp_error());
    return status == VLP_ERR_INTERRUPTED ? EXIT_STOPPED : EXIT_USAGE;
}

static int unknown_flag(const cli_command *command, const char *name) {
    const char *known[CLI_MAX_FLAGS];
    size_t n = 0;
    for (const cli_flag *f = command->flags; f && f->name && n < CLI_MAX_FLAGS; f++)
        known[n++] = f->name;
    for (const cli_flag *f = common; f->name && n < CLI_MAX_FLAGS; f++) known[n++] = f->name;
    char hint[128];
    return cli_usage("%s: unknown option %s%s", command->name, name,
                     vlp_suggest_text(name, known, n, hint, sizeof hint));
}

/* Takes the option at argv[*i]; EXIT_DONE or a usage error. */
static int take_flag(const cli_command *command, cli_args *args, int argc, char **argv, int *i) {
    char *text = argv[*i], *equals = strncmp(text, "--", 2) == 0 ? strchr(text, '=') : NULL;
    size_t len = equals ? (size_t)(equals - text) : strlen(text);
    bool brief = text[1] != '-';
    const cli_flag *flag = find_flag(command->flags, text, len, brief ? text[1] : '\0');
    if (!flag) return unknown_flag(command, text);
    const char *value = equals ? equals + 1 : brief && text[2] ? text + 2 : NULL;
    if (!flag->value && value) return cli_usage("%s takes no value", flag->name);
    if (flag->value && !value) {
        if (*i + 1 >= argc) return cli_usage("%s needs a value: %s", flag->name, flag->value);
        value = argv[++*i];
    }
    if (args->n_given == CLI_MAX_VALUES) return cli_usage("more than %d options", CLI_MAX_VALUES);
    args->given[args->n_given].name = flag->name;
    args->given[args->n_given++].value = value ? value : "";
    return EXIT_DONE;
}

/* "-red" where such are texts; "-k", "-k3" and "--top" are options all the same. */
static bool is_dashed_text(const cli_command *command, const char *text) {
    if (!command->dashed_texts || text[1] == '-' || !text[2]) return false;
    const cli_flag *flag = find_flag(command->flags, text, 0, text[1]);
    return !flag || !flag->value || text[2 + strspn(text + 2, "0123456789")] != '\0';
}

static int parse(const cli_command *command, cli_args *args, int argc, char **argv) {
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        bool option = text[0] == '-' && text[1] && !is_dashed_text(command, text);
        if (options && strcmp(text, "--") == 0) {
            options = false;
        } else if (options && option) {
            int code = take_flag(command, args, argc, argv, &i);
            if (code != EXIT_DONE) return code;
        } else {
            args->positional[args->n_positional++] = text;
        }
    }
    return EXIT_DONE;
}

bool cli_has(const cli_args *args, const char *name) {
    return cli_nth(args, name, 0) != NULL;
}

const char *cli_text(const cli_args *args, const char *name, const char *fallback) {
    for (int i = args->n_given - 1; i >= 0; i--)
        if (strcmp(args->given[i].name, name) == 0) return args->given[i].value;
    return fallback;
}

const char *cli_nth(const cli_args *args, const char *name, int n) {
    for (int i = 0; i < args->n_given; i++)
        if (strcmp(args->given[i].name, name) == 0 && n-- == 0) return args->given[i].value;
    return NULL;
}

vlp_status cli_double(const cli_args *args, const char *name, double fallback, double least,
                      double most, double *out) {
    const char *text = cli_text(args, name, NULL);
    *out = fallback;
    if (!text) return VLP_OK;
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !isfinite(*out))
        return VLP_FAIL(VLP_ERR_USAGE, "%s is \"%s\"; it must be a number", name, text);
    if (*out < least || *out > most)
        return VLP_FAIL(VLP_ERR_USAGE, "%s is %s; it must lie between %g and %g", name, text, least,
                        most);
    return VLP_OK;
}

vlp_status cli_int(const cli_args *args, const char *name, int64_t fallback, int64_t least,
                   int64_t most, int64_t *out) {
    double value;
    VLP_TRY(cli_double(args, name, (double)fallback, (double)least, (double)most, &value));
    if (value != floor(value))
        return VLP_FAIL(VLP_ERR_USAGE, "%s is %g; it must be a whole number", name, value);
    *out = (int64_t)value;
    return VLP_OK;
}

static void print_flags(const cli_flag *flags) {
    for (; flags && flags->name; flags++) {
        char left[64];
        snprintf(left, sizeof left, "%s%c%s%s %s", flags->letter ? "-" : "",
                 flags->letter ? flags->letter : ' ', flags->letter ? ", " : "   ", flags->name,
                 flags->value ? flags->value : "");
        printf("  %-28s %s\n", left, flags->help);
    }
}

/* "train, load: text" is of the jobs train and load; without such a beginning, of all. */
static bool belongs_to(const char *help, const char *job) {
    size_t n = strlen(job), end = strcspn(help, ":");
    if (help[end] == '\0' || strspn(help, "abcdefghijklmnopqrstuvwxyz, ") != end) return true;
    for (const char *at = help; at < help + end; at += strcspn(at, " :") + 1)
        if (strncmp(at, job, n) == 0 && (at[n] == ',' || at[n] == ':')) return true;
    return false;
}

vlp_status cli_check_job(const cli_args *args, const char *job) {
    for (int i = 0; i < args->n_given; i++) {
        const cli_flag *flag =
            find_in(args->flags, args->given[i].name, strlen(args->given[i].name), '\0');
        if (flag && !belongs_to(flag->help, job))
            return VLP_FAIL(VLP_ERR_USAGE, "%s takes no %s, which is for %.*s", job, flag->name,
                            (int)strcspn(flag->help, ":"), flag->help);
    }
    return VLP_OK;
}

static vlp_status check_pairs(const cli_command *command, const cli_args *args) {
    static const cli_pair none = {NULL, NULL},
                          quiet_or_not[] = {{"--quiet", "--verbose"}, {NULL, NULL}};
    const cli_pair *clashes[] = {quiet_or_not, command->clashes ? command->clashes : &none};
    for (size_t t = 0; t < VLP_COUNT(clashes); t++)
        for (const cli_pair *p = clashes[t]; p->first; p++)
            if (cli_has(args, p->first) && cli_has(args, p->second))
                return VLP_FAIL(VLP_ERR_USAGE, "%s and %s contradict each other; give one of them",
                                p->first, p->second);
    for (const cli_pair *p = command->needs ? command->needs : &none; p->first; p++)
        if (cli_has(args, p->first) && !cli_has(args, p->second))
            return VLP_FAIL(VLP_ERR_USAGE, "%s means nothing without %s", p->first, p->second);
    return VLP_OK;
}

void cli_print_help(const cli_command *command) {
    printf("vlp %s: %s\n\nUsage: vlp %s %s\n", command->name, command->summary, command->name,
           command->usage);
    if (command->details) printf("\n%s\n", command->details);
    puts("\nOptions:");
    print_flags(command->flags);
    print_flags(common);
    printf("\nExamples:\n%s", command->examples);
}

static void print_log(vlp_log_level level, const char *line, void *user) {
    (void)user;
    static const char *const words[] = {"error: ", "warning: ", "", ""};
    cli_progress_end();
    fprintf(stderr, "%s%s\n", words[level], line);
}

static vlp_status apply_common(const cli_args *args) {
    int64_t threads = 0;
    quiet = cli_has(args, "--quiet");
    vlp_log_set(print_log, NULL,
                quiet                        ? VLP_LOG_ERROR
                : cli_has(args, "--verbose") ? VLP_LOG_DEBUG
                                             : VLP_LOG_INFO);
    VLP_TRY(vlp_isa_check());
    VLP_TRY(vlp_gemm_backend_check());
    VLP_TRY(cli_int(args, "--threads", 0, 0, VLP_THREADS_MAX, &threads));
    return vlp_threads_set((int)threads);
}

int cli_finish(int code) {
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (!failed || errno == EPIPE || code == EXIT_USAGE) return code;
    fprintf(stderr, "vlp: cannot write the output%s%s\n", errno ? ": " : "; is the disk full?",
            errno ? strerror(errno) : "");
    return EXIT_USAGE;
}

int cli_run(const cli_command *command, int argc, char **argv) {
    cli_args args = {.flags = command->flags};
    args.positional = vlp_alloc((size_t)argc * sizeof *args.positional);
    if (!args.positional) return cli_fail(VLP_ERR_MEMORY);
    int code = parse(command, &args, argc, argv);
    if (code == EXIT_DONE && cli_has(&args, "--help")) {
        cli_print_help(command);
    } else if (code == EXIT_DONE) {
        vlp_status status = apply_common(&args);
        if (status == VLP_OK) status = check_pairs(command, &args);
        if (status == VLP_OK) status = cli_check_outputs(&args);
        code = status == VLP_OK ? command->run(&args) : cli_fail(status);
        cli_progress_end();
    }
    vlp_free(args.positional);
    return cli_finish(code);
}

static void on_signal(int number) {
    (void)number;
    cli_stop = 1;
}

void cli_watch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_quiet(void) {
    return quiet;
}

vlp_status cli_list_read(cli_list *out, const char *text) {
    *out = (cli_list){0};
    vlp_buf buf = {0};
    if (vlp_is_special(text))
        return VLP_FAIL(VLP_ERR_USAGE, "%s is not a regular file; pipe it in and name -", text);
    FILE *file = strcmp(text, "-") == 0 ? stdin : fopen(text, "re");
    vlp_status status = VLP_OK;
    if (file) {
        char chunk[4096];
        for (size_t n; status == VLP_OK && (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
            status = vlp_buf_append(&buf, chunk, n);
        if (file != stdin) fclose(file);
    } else if (strchr(text, ',') || strstr(text, "{}")) {
        status = vlp_buf_puts(&buf, text);
        for (char *p = buf.data; status == VLP_OK && *p; p++)
            if (*p == ',') *p = '\n';
    } else {
        return VLP_FAIL(VLP_ERR_NOT_FOUND,
                        "cannot open %s: %s; a list on the command line has commas: a,b,c", text,
                        strerror(errno));
    }
    for (char *save,
         *line = status == VLP_OK && buf.data ? strtok_r(buf.data, "\r\n", &save) : NULL;
         line && status == VLP_OK; line = strtok_r(NULL, "\r\n", &save)) {
        while (*line == ' ' || *line == '\t') line++;
        if (!*line || *line == '#') continue;
        char **items = vlp_realloc(out->items, (size_t)(out->count + 1) * sizeof *items);
        char *copy = items ? vlp_strdup(line) : NULL;
        if (items) out->items = items;
        if (copy)
            out->items[out->count++] = copy;
        else
            status = VLP_ERR_MEMORY;
    }
    vlp_buf_free(&buf);
    if (status == VLP_OK && out->count == 0)
        status = VLP_FAIL(VLP_ERR_USAGE, "%s holds no entries", text);
    if (status != VLP_OK) cli_list_free(out);
    return status;
}

vlp_status cli_classes_read(cli_list *out, const char *text) {
    VLP_TRY(cli_list_read(out, text));
    for (int64_t i = 0; i < out->count; i++)
        for (int64_t j = 0; j < i; j++) {
            if (strcmp(out->items[i], out->items[j]) != 0) continue;
            vlp_status status = VLP_FAIL(VLP_ERR_USAGE, "the class \"%s\" is listed twice in %s",
                                         out->items[i], text);
            cli_list_free(out);
            return status;
        }
    return VLP_OK;
}

void cli_list_free(cli_list *list) {
    for (int64_t i = 0; i < list->count; i++) vlp_free(list->items[i]);
    vlp_free(list->items);
    *list = (cli_list){0};
}
