#include "core/log.h"

#include <stdarg.h>
#include <stdio.h>

static vlp_log_sink log_sink;
static void *log_user;
static vlp_log_level log_most = VLP_LOG_INFO;

void vlp_log_set(vlp_log_sink sink, void *user, vlp_log_level most) {
    log_sink = sink;
    log_user = user;
    log_most = most;
}

void vlp_log(vlp_log_level level, const char *format, ...) {
    if (!log_sink || level > log_most) return;
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log_sink(level, line, log_user);
}
