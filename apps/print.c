/* Printing: progress, numbers for people, JSON lines. */
#include "apps/cli.h"

#include "core/json.h"
#include "train/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const double seconds_between_lines = 5;
static bool live_line;

bool cli_live(void) {
    return isatty(STDERR_FILENO) && !cli_quiet();
}

bool cli_colour(void) {
    return cli_live() && !getenv("NO_COLOR");
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_progress(const char *format, ...) {
    static double last;
    if (cli_quiet()) return;
    double interval = cli_live() ? 0.1 : seconds_between_lines, time = now();
    if (last > 0 && time - last < interval) return;
    last = time;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (cli_live())
        fprintf(stderr, "\r\033[K%s", line);
    else
        fprintf(stderr, "%s\n", line);
    live_line = cli_live();
    fflush(stderr);
}

void cli_progress_end(void) {
    if (live_line) fputs("\r\033[K", stderr);
    live_line = false;
}

const char *cli_bytes(double bytes, char out[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < VLP_COUNT(units); u++) bytes /= 1024;
    snprintf(out, 32, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return out;
}

const char *cli_count(double count, char out[32]) {
    static const char *const units[] = {"", " k", " M", " G", " T"};
    size_t u = 0;
    for (; count >= 10000 && u + 1 < VLP_COUNT(units); u++) count /= 1000;
    snprintf(out, 32, u ? "%.2f%s" : "%.0f%s", count, units[u]);
    return out;
}

const char *cli_duration(double seconds, char out[32]) {
    long s = (long)(seconds + 0.5);
    if (s < 60)
        snprintf(out, 32, "%ld s", s);
    else if (s < 3600)
        snprintf(out, 32, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, 32, "%ld h %02ld min", s / 3600, s % 3600 / 60);
    return out;
}

double cli_peak_rss_mb(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024 / 1e6;
}

void cli_print_json(vlp_json *value) {
    vlp_buf text = {0};
    if (vlp_json_dump(value, 0, &text) == VLP_OK) puts(text.data);
    vlp_buf_free(&text);
    vlp_json_free(value);
}

void cli_print_csv(const char *text) {
    vlp_buf quoted = {0};
    if (vlp_csv_quote(&quoted, text) == VLP_OK) fputs(quoted.data, stdout);
    vlp_buf_free(&quoted);
}
