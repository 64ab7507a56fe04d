#include "train/schedule.h"

#include "core/status.h"

#include <math.h>

static double cosine(double x) {
    return 0.5 * (1 + cos(acos(-1.0) * x));
}

static double linear(double x) {
    return x < 1 ? 1 - x : 0;
}

static double constant(double x) {
    (void)x;
    return 1;
}

/* The part of (lr - floor) that is left at progress x after the warm-up. */
static double (*const shapes[])(double x) = {cosine, linear, constant};

const char *const vlp_schedule_kinds[] = {"cosine", "linear", "constant", NULL};

_Static_assert(VLP_COUNT(shapes) + 1 == VLP_COUNT(vlp_schedule_kinds), "a name for every shape");

double vlp_schedule_lr(const vlp_schedule *s, int64_t t) {
    VLP_ASSERT(s->kind >= 0 && s->kind < (int)VLP_COUNT(shapes) && t >= 0, "schedule %d at %lld",
               s->kind, (long long)t);
    if (t < s->warmup) return s->lr * (double)(s->from_zero ? t : t + 1) / (double)s->warmup;
    int64_t length = s->total - s->warmup;
    double x = (double)(t - s->warmup) / (double)(length > 1 ? length : 1);
    if (!s->from_zero && x > 1) x = 1;
    return s->floor + (s->lr - s->floor) * shapes[s->kind](x);
}
