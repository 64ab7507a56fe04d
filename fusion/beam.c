/* Beam search by Hugging Face's rules: twice as many candidates as beams, so that as many go on
 * when half of them end; an end counts only among the best `beams` candidates; a finished text's
 * score is log p / length^penalty, its end token not counted. */
#include "fusion/generate_internal.h"

#include <math.h>
#include <string.h>

typedef struct {
    double score;
    int32_t row, token; /* row: within the source */
} candidate;

enum { MOST_CANDIDATES = 128 };

void vlp_beam_begin(vlp_generator *w, int64_t n) {
    int64_t beams = w->options.beams;
    for (int64_t i = 0; i < n; i++) {
        w->done[i] = false;
        w->end_counts[i] = 0;
        for (int64_t b = 0; b < beams; b++) w->sums[i * beams + b] = b == 0 ? 0 : -1e9;
    }
}

static void insert(candidate *best, int64_t *count, int64_t most, candidate c) {
    int64_t at = *count;
    if (at == most && !(c.score > best[at - 1].score)) return;
    if (at == most) at--;
    for (; at > 0 && c.score > best[at - 1].score; at--) best[at] = best[at - 1];
    best[at] = c;
    if (*count < most) ++*count;
}

static int64_t candidates(vlp_generator *w, int64_t source, int64_t length, candidate *best) {
    int64_t beams = w->options.beams, count = 0;
    for (int64_t b = 0; b < beams; b++) {
        int64_t row = source * beams + b;
        double *scores = w->scores + row * w->vocab;
        vlp_scores_log_softmax(w->logits + row * w->vocab, w->vocab, scores);
        vlp_scores_process(&w->options, (int32_t)w->model->config.eos_id, w->ids + row * w->length,
                           length, scores);
        for (int64_t v = 0; v < w->vocab; v++)
            insert(best, &count, 2 * beams,
                   (candidate){w->sums[row] + scores[v], (int32_t)b, (int32_t)v});
    }
    return count;
}

/* Keeps the best `beams` ends of a source, the best first. */
static void add_end(vlp_generator *w, int64_t source, int64_t row, int64_t length, double sum) {
    vlp_hypothesis *ends = w->ends + source * (w->options.beams + 1);
    int n = w->end_counts[source];
    double score = sum / pow((double)length, w->options.length_penalty);
    if (n == w->options.beams && !(score > ends[n - 1].score)) return;
    vlp_hypothesis end = ends[n];
    end.length = length;
    end.score = score;
    memcpy(end.ids, w->ids + row * w->length, (size_t)length * sizeof *end.ids);
    int at = n;
    for (; at > 0 && score > ends[at - 1].score; at--) ends[at] = ends[at - 1];
    ends[at] = end;
    if (n < w->options.beams) w->end_counts[source]++;
}

/* Whether no beam that goes on, the best of which has log p `sum`, can beat the ends. */
static bool settled(const vlp_generator *w, int64_t source, double sum, int64_t length) {
    const vlp_hypothesis *ends = w->ends + source * (w->options.beams + 1);
    if (w->end_counts[source] < w->options.beams) return false;
    return w->options.early_stopping ||
           ends[w->options.beams - 1].score >= sum / pow((double)length, w->options.length_penalty);
}

static void advance(vlp_generator *w, int64_t source, int64_t length) {
    candidate best[MOST_CANDIDATES];
    int64_t beams = w->options.beams, first = source * beams, kept = 0;
    int64_t count = candidates(w, source, length, best);
    double sums[MOST_CANDIDATES];
    for (int64_t i = 0; i < count && kept < beams; i++) {
        if (best[i].token == w->model->config.eos_id) {
            if (i < beams) add_end(w, source, first + best[i].row, length, best[i].score);
            continue;
        }
        w->from[first + kept] = (int32_t)(first + best[i].row);
        w->last[first + kept] = best[i].token;
        sums[kept++] = best[i].score;
    }
    memcpy(w->sums + first, sums, (size_t)kept * sizeof *sums);
    w->done[source] = settled(w, source, best[0].score, length);
}

void vlp_beam_advance(vlp_generator *w, int64_t n, int64_t length) {
    int64_t beams = w->options.beams;
    for (int64_t i = 0; i < n; i++) {
        if (!w->done[i]) {
            advance(w, i, length);
            continue;
        }
        for (int64_t row = i * beams; row < (i + 1) * beams; row++) {
            w->from[row] = (int32_t)row;
            w->last[row] = 0;
        }
    }
}

bool vlp_beam_done(const vlp_generator *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!w->done[i]) return false;
    return true;
}

void vlp_beam_finish(vlp_generator *w, int64_t n, int64_t length, vlp_writing *writings) {
    int64_t beams = w->options.beams;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t b = 0; !w->done[i] && b < beams; b++)
            add_end(w, i, i * beams + b, length, w->sums[i * beams + b]);
        vlp_hypothesis *best = w->ends + i * (beams + 1);
        memset(best->ids + best->length, 0, (size_t)(w->length - best->length) * sizeof(int32_t));
        if (best->length < w->length) best->ids[best->length] = (int32_t)w->model->config.eos_id;
        writings[i] = (vlp_writing){best->ids, best->length, best->score};
    }
}
