#include "vision/vit_positions.h"

#include <math.h>

enum { TAPS = 4 };

typedef struct {
    int64_t index[TAPS];
    double weight[TAPS];
} axis_taps;

/* The cubic convolution kernel (Keys, 1981). */
static double cubic(double a, double x) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static axis_taps taps_of(int64_t at, int64_t from, double to) {
    axis_taps taps;
    double source = ((double)at + 0.5) * (double)from / to - 0.5, base = floor(source);
    for (int t = 0; t < TAPS; t++) {
        double place = base + t - 1;
        taps.weight[t] = cubic(-0.75, source - place);
        taps.index[t] = place < 0 ? 0 : place > (double)(from - 1) ? from - 1 : (int64_t)place;
    }
    return taps;
}

void vlp_position_weights(vlp_grid from, vlp_grid to, int64_t prefix, double offset,
                          vlp_real *matrix) {
    int64_t old = prefix + from.rows * from.columns, new = prefix + to.rows *to.columns;
    for (int64_t i = 0; i < new *old; i++) matrix[i] = 0;
    for (int64_t i = 0; i < prefix; i++) matrix[i * old + i] = 1;
    for (int64_t i = 0; i < new - prefix; i++) {
        axis_taps y = taps_of(i / to.columns, from.rows, (double)to.rows + offset);
        axis_taps x = taps_of(i % to.columns, from.columns, (double)to.columns + offset);
        vlp_real *row = matrix + (prefix + i) * old + prefix;
        for (int v = 0; v < TAPS; v++)
            for (int u = 0; u < TAPS; u++)
                row[y.index[v] * from.columns + x.index[u]] +=
                    (vlp_real)(y.weight[v] * x.weight[u]);
    }
}

/* The weight of old position `index` in new position `at` along one axis, not yet normalised. */
static double smooth(int64_t at, int64_t index, int64_t from, int64_t to) {
    double scale = (double)from / (double)to, stretch = scale > 1 ? scale : 1;
    double center = scale * ((double)at + 0.5);
    return cubic(-0.5, ((double)index + 0.5 - center) / stretch);
}

static double smooth_sum(int64_t at, int64_t from, int64_t to) {
    double sum = 0;
    for (int64_t i = 0; i < from; i++) sum += smooth(at, i, from, to);
    return sum;
}

void vlp_position_weights_smooth(vlp_grid from, vlp_grid to, int64_t prefix, vlp_real *matrix) {
    int64_t old = prefix + from.rows * from.columns, new = prefix + to.rows *to.columns;
    for (int64_t i = 0; i < new *old; i++) matrix[i] = 0;
    for (int64_t i = 0; i < prefix; i++) matrix[i * old + i] = 1;
    for (int64_t i = 0; i < new - prefix; i++) {
        int64_t r = i / to.columns, c = i % to.columns;
        double total = smooth_sum(r, from.rows, to.rows) * smooth_sum(c, from.columns, to.columns);
        vlp_real *row = matrix + (prefix + i) * old + prefix;
        for (int64_t k = 0; k < from.rows * from.columns; k++)
            row[k] = (vlp_real)(smooth(r, k / from.columns, from.rows, to.rows) *
                                smooth(c, k % from.columns, from.columns, to.columns) / total);
    }
}

static void waves(double at, int64_t quarter, vlp_real *out) {
    for (int64_t k = 0; k < quarter; k++) {
        double angle = at * pow(10000, -(double)k / (double)quarter);
        out[k] = (vlp_real)sin(angle);
        out[quarter + k] = (vlp_real)cos(angle);
    }
}

void vlp_position_waves(vlp_grid grid, int64_t prefix, int64_t width, vlp_real *out) {
    for (int64_t i = 0; i < prefix * width; i++) out[i] = 0;
    for (int64_t i = 0; i < grid.rows * grid.columns; i++) {
        vlp_real *row = out + (prefix + i) * width;
        waves((double)(i % grid.columns), width / 4, row);
        waves((double)(i / grid.columns), width / 4, row + width / 2);
    }
}
