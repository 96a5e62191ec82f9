/* W3: 784-50-10, one image of bytes a step, squared error.  float64, strict: every sum in the order of the Python step.
 *
 * How it was tuned: the first layer is 351 kB, so a step is as fast as it passes between the first and the second
 * level cache (perf: 64 bytes a cycle).  It is read in the forward part and read and written in the update, with nothing
 * else in memory: weights input-major, 48 units in 6 vectors and the other 2 in an array of their own, because padding
 * to 56 costs 10 %; the sums of all units in registers; pixels scaled by a table of the 256 quotients.  The update runs
 * from the last pixel to the first, so that what is still in the first level cache is used at both ends.  The second
 * layer is kept both ways round, for its sums run over units forward and over scores backward.
 * The loop form fuses the update of one step with the forward part of the next: one pass instead of two. Prefetching 8 rows
 * ahead helps there (5 %), and nowhere else. */
#include "harness.h"

extern double pow(double, double);

typedef double v8 __attribute__((vector_size(64)));
typedef double v2 __attribute__((vector_size(16)));
typedef long m8 __attribute__((vector_size(64)));

enum { PIXELS = 784, HIDDEN = 50, SCORES = 10, V = 7 };

typedef struct {
    v8 w[PIXELS][V - 1], b[V]; /* first layer: [pixel][unit] */
    v2 last[PIXELS];           /* its units 48 and 49 */
    v8 u[SCORES][V];       /* second layer: [score][unit] */
    v8 t[HIDDEN][2], c[2]; /* the same [unit][score], and its biases */
    double scaled[256];
} State;

static double *weight(State *s, int pixel, int unit)
{
    return unit < 48 ? (double *)s->w[pixel] + unit : (double *)&s->last[pixel] + unit - 48;
}

static void open_state(State *s, const double *p)
{
    for (int j = 0; j < HIDDEN; j++) {
        for (int i = 0; i < PIXELS; i++)
            *weight(s, i, j) = *p++;
        ((double *)s->b)[j] = *p++;
    }
    for (int j = 0; j < SCORES; j++) {
        for (int k = 0; k < HIDDEN; k++)
            ((double *)s->u[j])[k] = ((double *)s->t[k])[j] = *p++;
        ((double *)s->c)[j] = *p++;
    }
    for (int k = 0; k < 256; k++)
        s->scaled[k] = k / 255.0;
}

static void parameters(const State *s, double *p)
{
    for (int j = 0; j < HIDDEN; j++) {
        for (int i = 0; i < PIXELS; i++)
            *p++ = *weight((State *)s, i, j);
        *p++ = ((const double *)s->b)[j];
    }
    for (int j = 0; j < SCORES; j++) {
        for (int k = 0; k < HIDDEN; k++)
            *p++ = ((const double *)s->u[j])[k];
        *p++ = ((const double *)s->c)[j];
    }
}

#define EACH(v) for (int v = 0; v < V; v++)
#define EACH_BUT_LAST(v) for (int v = 0; v < V - 1; v++)

/* z = b + the weighted pixels. */
static inline __attribute__((always_inline)) void forward(const State *s, const unsigned char *x, v8 *z)
{
    v8 a[V - 1];
    v2 last = {s->b[V - 1][0], s->b[V - 1][1]};
    EACH_BUT_LAST(v) a[v] = s->b[v];
    for (int i = 0; i < PIXELS; i++) {
        double xi = s->scaled[x[i]];
#pragma GCC unroll 8
        EACH_BUT_LAST(v) a[v] += s->w[i][v] * xi;
        last += s->last[i] * xi;
    }
    EACH_BUT_LAST(v) z[v] = a[v];
    z[V - 1] = (v8){last[0], last[1]};
}

/* From the sums of the first layer to their gradients; updates the second layer and the first biases. */
static inline __attribute__((always_inline)) double upper(State *s, const v8 *z, int label, double rate, v8 *gz)
{
    v8 h[V], gh[V] = {0}, z2[2] = {s->c[0], s->c[1]};
    EACH(v) h[v] = (v8)((z[v] > 0.0) & (m8)z[v]);
    for (int k = 0; k < HIDDEN; k++) {
        double hk = ((double *)h)[k];
        z2[0] += s->t[k][0] * hk;
        z2[1] += s->t[k][1] * hk;
    }
    v8 d[2] = {z2[0], z2[1]};
    ((double *)d)[label] -= 1.0;
    v8 g[2] = {2.0 * d[0], 2.0 * d[1]};
    for (int j = SCORES - 1; j >= 0; j--) {
        double gj = ((double *)g)[j];
#pragma GCC unroll 8
        EACH(v)
        {
            gh[v] += s->u[j][v] * gj;
            s->u[j][v] -= rate * (h[v] * gj);
        }
    }
    for (int k = 0; k < HIDDEN; k++) {
        double hk = ((double *)h)[k];
        s->t[k][0] -= rate * (hk * g[0]);
        s->t[k][1] -= rate * (hk * g[1]);
    }
    s->c[0] -= rate * g[0];
    s->c[1] -= rate * g[1];
    EACH(v)
    {
        gz[v] = (v8)((h[v] > 0.0) & (m8)gh[v]);
        s->b[v] -= rate * gz[v];
    }
    double loss = 0.0;
    for (int j = 0; j < SCORES; j++)
        loss += pow(((double *)d)[j], 2.0);
    return loss;
}

static inline __attribute__((always_inline)) void update(State *s, const unsigned char *x, const v8 *gz, double rate)
{
    v8 g[V - 1];
    v2 last = {gz[V - 1][0], gz[V - 1][1]};
    EACH_BUT_LAST(v) g[v] = gz[v];
    for (int i = PIXELS - 1; i >= 0; i--) {
        double xi = s->scaled[x[i]];
#pragma GCC unroll 8
        EACH_BUT_LAST(v) s->w[i][v] -= rate * (xi * g[v]);
        s->last[i] -= rate * (xi * last);
    }
}

static double step(State *s, const Row *row)
{
    v8 z[V], gz[V];
    forward(s, row->inputs, z);
    double loss = upper(s, z, *(const unsigned char *)row->targets, row->rate, gz);
    update(s, row->inputs, gz, row->rate);
    return loss;
}

REFERENCE()

EXPORT void reference_loop(State *s, const Row *rows, long count, double *losses)
{
    v8 z[V], gz[V];
    if (count)
        forward(s, rows[0].inputs, z);
    for (long k = 0; k < count; k++) {
        const unsigned char *x = rows[k].inputs;
        double rate = rows[k].rate;
        losses[k] = upper(s, z, *(const unsigned char *)rows[k].targets, rate, gz);
        if (k + 1 == count) {
            update(s, x, gz, rate);
            return;
        }
        const unsigned char *next = rows[k + 1].inputs;
        v8 a[V - 1], g[V - 1];
        v2 last = {s->b[V - 1][0], s->b[V - 1][1]}, last_g = {gz[V - 1][0], gz[V - 1][1]};
        EACH_BUT_LAST(v) a[v] = s->b[v], g[v] = gz[v];
        for (int i = 0; i < PIXELS; i++) {
            double xi = s->scaled[x[i]], yi = s->scaled[next[i]];
            EACH_BUT_LAST(v) __builtin_prefetch(&s->w[i + 8][v], 1);
#pragma GCC unroll 8
            EACH_BUT_LAST(v)
            {
                v8 w = s->w[i][v] - rate * (xi * g[v]);
                s->w[i][v] = w;
                a[v] += w * yi;
            }
            v2 w = s->last[i] - rate * (xi * last_g);
            s->last[i] = w;
            last += w * yi;
        }
        EACH_BUT_LAST(v) z[v] = a[v];
        z[V - 1] = (v8){last[0], last[1]};
    }
}
