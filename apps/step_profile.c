#include "apps/step_profile.h"

#include <stdlib.h>

/* One line: an op's pass, or what is not in an op. */
typedef struct {
    const char *name, *pass; /* pass NULL: not an op */
    vlp_op_cost cost;
} line;

enum { LINES = 2 * VLP_OP_PROFILE_ROWS + 3 };

static double seconds_of(const vlp_op_row *row) {
    return row->forward.seconds + row->backward.seconds;
}

static int slowest_first(const void *a, const void *b) {
    double x = seconds_of(a), y = seconds_of(b);
    return (x < y) - (x > y);
}

static int collect(vlp_step_profile *p, line lines[LINES]) {
    int n = 0;
    double left = p->seconds - p->update_seconds - p->data_seconds;
    qsort(p->ops.rows, (size_t)p->ops.count, sizeof *p->ops.rows, slowest_first);
    for (int i = 0; i < p->ops.count; i++) {
        const vlp_op_row *row = &p->ops.rows[i];
        left -= seconds_of(row);
        if (row->forward.calls) lines[n++] = (line){row->op, "forward", row->forward};
        if (row->backward.calls) lines[n++] = (line){row->op, "backward", row->backward};
    }
    lines[n++] =
        (line){"(update)",
               NULL,
               {.calls = p->steps, .seconds = p->update_seconds, .bytes = p->update_bytes}};
    if (p->data_seconds > 0) lines[n++] = (line){"(data)", NULL, {.seconds = p->data_seconds}};
    lines[n++] = (line){"(between ops)", NULL, {.seconds = left > 0 ? left : 0}};
    return n;
}

static double roofline(const vlp_op_cost *c, double gflops, const ceilings *peak) {
    double products = 1e-9 * c->flops / gflops;
    double memory = peak->memory > 0 ? 1e-9 * c->bytes / peak->memory : 0;
    return c->seconds > 0 ? (products > memory ? products : memory) / c->seconds : 0;
}

static void print_rate(FILE *to, int width, double rate) {
    if (rate > 0)
        fprintf(to, " %*.1f", width, rate);
    else
        fprintf(to, " %*s", width, "-");
}

static void print_line(FILE *to, const line *l, const vlp_step_profile *p, double gflops,
                       const ceilings *peak) {
    const vlp_op_cost *c = &l->cost;
    double steps = (double)p->steps;
    fprintf(to, "  %-20s %-8s %6.1f %9.2f %6.0f", l->name, l->pass ? l->pass : "",
            100 * c->seconds / p->seconds, 1e3 * c->seconds / steps, (double)c->calls / steps);
    print_rate(to, 9, 1e-6 * c->bytes / steps);
    print_rate(to, 9, 1e-9 * c->flops / steps);
    print_rate(to, 7, c->seconds > 0 ? 1e-9 * c->bytes / c->seconds : 0);
    print_rate(to, 8, c->seconds > 0 ? 1e-9 * c->flops / c->seconds : 0);
    print_rate(to, 9, 100 * roofline(c, gflops, peak));
    fputc('\n', to);
}

void step_profile_print(FILE *to, vlp_step_profile *p, vlp_dtype precision, const ceilings *peak) {
    static line lines[LINES];
    double gflops = ceilings_gflops(peak, precision);
    if (p->steps == 0) {
        fprintf(to, "no profile: it begins after %d steps\n", VLP_STEPS_TO_WARM_UP);
        return;
    }
    int n = collect(p, lines);
    fprintf(to, "\na step, of %lld that were profiled (roofline: of ", (long long)p->steps);
    fprintf(to, "%.0f GFLOP/s and %.1f GB/s)\n", gflops, peak->memory);
    fprintf(to, "  %-20s %-8s %6s %9s %6s %9s %9s %7s %8s %9s\n", "op", "pass", "share%", "ms",
            "calls", "MB", "GFLOP", "GB/s", "GFLOP/s", "roofline%");
    for (int i = 0; i < n; i++) print_line(to, &lines[i], p, gflops, peak);
}

vlp_json *step_profile_json(vlp_step_profile *p, vlp_dtype precision, const ceilings *peak) {
    static line lines[LINES];
    vlp_json *array = vlp_json_new_array();
    double steps = (double)p->steps, gflops = ceilings_gflops(peak, precision);
    int n = p->steps ? collect(p, lines) : 0;
    for (int i = 0; i < n; i++) {
        const vlp_op_cost *c = &lines[i].cost;
        vlp_json *json = vlp_json_new_object();
        vlp_json_set_string(json, "op", lines[i].name);
        if (lines[i].pass) vlp_json_set_string(json, "pass", lines[i].pass);
        vlp_json_set_double(json, "ms", 1e3 * c->seconds / steps);
        vlp_json_set_double(json, "share", c->seconds / p->seconds);
        if (c->calls) vlp_json_set_double(json, "calls", (double)c->calls / steps);
        vlp_json_set_double(json, "bytes", c->bytes / steps);
        vlp_json_set_double(json, "flops", c->flops / steps);
        if (c->seconds > 0) {
            vlp_json_set_double(json, "gb_per_s", 1e-9 * c->bytes / c->seconds);
            vlp_json_set_double(json, "gflops", 1e-9 * c->flops / c->seconds);
            vlp_json_set_double(json, "roofline", roofline(c, gflops, peak));
        }
        vlp_json_append(array, json);
    }
    return array;
}
