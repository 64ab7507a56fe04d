/* Messages for people. The library never prints: it hands lines to the sink that the program set.
 */
#ifndef VLP_CORE_LOG_H
#define VLP_CORE_LOG_H

typedef enum { VLP_LOG_ERROR, VLP_LOG_WARN, VLP_LOG_INFO, VLP_LOG_DEBUG } vlp_log_level;

/* Called from any thread with one line without newline; must be thread-safe. NULL = silence. */
typedef void (*vlp_log_sink)(vlp_log_level level, const char *line, void *user);

void vlp_log_set(vlp_log_sink sink, void *user, vlp_log_level most);
void vlp_log(vlp_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
