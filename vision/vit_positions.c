#include "vision/vit_positions.h"

#include <math.h>

enum { TAPS = 4 };

typedef struct {
    int64_t index[TAPS];
    double weight[TAPS];
} axis_taps;

/* The cubic convolution kernel (Keys, 1981). */
static double cubic(double x) {
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static axis_taps taps_of(int64_t at, int64_t from, double to) {
    axis_taps taps;
    double source = ((double)at + 0.5) * (double)from / to - 0.5, base = floor(source);
    for (int t = 0; t < TAPS; t++) {
        double place = base + t - 1;
        taps.weight[t] = cubic(source - place);
        taps.index[t] = place < 0 ? 0 : place > (double)(from - 1) ? from - 1 : (int64_t)place;
    }
    return taps;
}

void vlp_position_weights(vlp_grid from, vlp_grid to, double offset, vlp_real *matrix) {
    int64_t old = 1 + from.rows * from.columns, new = 1 + to.rows *to.columns;
    for (int64_t i = 0; i < new *old; i++) matrix[i] = 0;
    matrix[0] = 1;
    for (int64_t i = 0; i < new - 1; i++) {
        axis_taps y = taps_of(i / to.columns, from.rows, (double)to.rows + offset);
        axis_taps x = taps_of(i % to.columns, from.columns, (double)to.columns + offset);
        vlp_real *row = matrix + (1 + i) * old + 1;
        for (int v = 0; v < TAPS; v++)
            for (int u = 0; u < TAPS; u++)
                row[y.index[v] * from.columns + x.index[u]] +=
                    (vlp_real)(y.weight[v] * x.weight[u]);
    }
}
