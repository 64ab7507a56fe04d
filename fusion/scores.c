/* Scores of the next token. */
#include "core/memory.h"
#include "fusion/generate_internal.h"

#include <math.h>
#include <string.h>

static double log_sum_exp(const double *x, int64_t n) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(x[i] - most);
    return most + log(sum);
}

void vlp_scores_copy(const vlp_real *logits, int64_t vocab, double *scores) {
    for (int64_t v = 0; v < vocab; v++) scores[v] = (double)logits[v];
}

void vlp_scores_log_softmax(const vlp_real *logits, int64_t vocab, double *scores) {
    vlp_scores_copy(logits, vocab, scores);
    double lse = log_sum_exp(scores, vocab);
    for (int64_t v = 0; v < vocab; v++) scores[v] -= lse;
}

/* A token that is there twice is punished once. */
static bool seen_before(const int32_t *ids, int64_t at) {
    for (int64_t i = 0; i < at; i++)
        if (ids[i] == ids[at]) return true;
    return false;
}

void vlp_scores_process(const vlp_generate_options *o, int32_t eos, const int32_t *ids,
                        int64_t length, double *scores) {
    for (int64_t i = 0; o->repetition_penalty != 1 && i < length; i++) {
        double *score = &scores[ids[i]];
        if (seen_before(ids, i)) continue;
        *score = *score < 0 ? *score * o->repetition_penalty : *score / o->repetition_penalty;
    }
    if (length < o->min_length) scores[eos] = -INFINITY;
}

/* The largest of the scores that are below `bound`, with how many are above it not asked. */
static double next_below(const double *scores, int64_t n, double bound) {
    double best = -INFINITY;
    for (int64_t i = 0; i < n; i++)
        if (scores[i] < bound && scores[i] > best) best = scores[i];
    return best;
}

/* The least score that both cuts keep: walks down from the largest. */
static double threshold(const vlp_generate_options *o, int64_t vocab, const double *scores) {
    double lse = log_sum_exp(scores, vocab), bound = INFINITY, mass = 0;
    int64_t kept = 0;
    if ((o->top_k == 0 || o->top_k >= vocab) && o->top_p >= 1) return -INFINITY;
    while (kept < vocab) {
        double next = next_below(scores, vocab, bound);
        if (isinf(next)) return bound;
        for (int64_t v = 0; v < vocab; v++)
            if (scores[v] == next) {
                kept++;
                mass += exp(next - lse);
            }
        bound = next;
        if ((o->top_k > 0 && kept >= o->top_k) || mass >= o->top_p) return bound;
    }
    return bound;
}

int32_t vlp_scores_draw(const vlp_generate_options *o, int64_t vocab, double *scores,
                        vlp_rng *rng) {
    double sum = 0;
    for (int64_t v = 0; v < vocab; v++) scores[v] /= o->temperature;
    double least = threshold(o, vocab, scores), most = next_below(scores, vocab, INFINITY);
    for (int64_t v = 0; v < vocab; v++)
        if (scores[v] >= least) sum += exp(scores[v] - most);
    double u = vlp_rng_double(rng) * sum;
    int32_t last = 0;
    for (int64_t v = 0; v < vocab; v++) {
        if (!(scores[v] >= least) || isinf(scores[v])) continue;
        last = (int32_t)v;
        u -= exp(scores[v] - most);
        if (u < 0) break;
    }
    return last;
}
