/* W3: 784-50-10, one image of bytes a step, squared error.  float64, strict: every sum in the order of the Python step.
 *
 * How it was tuned: the first layer is 351 kB, so a step is as fast as it passes between the first and the second
 * level cache (perf: 64 bytes a cycle).  It is read in the forward part and read and written in the update, with nothing
 * else in memory: weights input-major, 48 units in 6 vectors and the other 2 in an array of their own, because padding
 * to 56 costs 10 %; the sums of all units in registers; pixels scaled by a table of the 256 quotients.  The update runs
 * from the last pixel to the first, so that what is still in the first level cache is used at both ends.  The second
 * layer is kept both ways round, for its sums run over units forward and over scores backward.
 * Rows of zero pixels, four fifths of an image, keep their weights in the update, where the gradients are finite: they are
 * neither read nor written.  (The forward part needs them: a weight that is not finite makes the sum nan.)
 * The loop form fuses the update of one step with the forward part of the next: one pass instead of two. Prefetching 8 rows
 * ahead helps there (5 %), and nowhere else. */
#include "harness.h"
#include "wide.h"

extern double pow(double, double);

typedef double v2 __attribute__((vector_size(16)));

/* 48 units are whole vectors, of which W are in registers at a time; with those of the last vectors there are V, and
 * there are S of scores. */
enum { PIXELS = 784, HIDDEN = 50, SCORES = 10, V = 56 / L, S = 16 / L, W = L == 8 ? 6 : 12, BLOCKS = 48 / L / W };

typedef struct {
    vd w[BLOCKS][PIXELS][W], b[V]; /* first layer: [pixel][unit] */
    v2 last[PIXELS];               /* its units 48 and 49 */
    vd u[SCORES][V];               /* second layer: [score][unit] */
    vd t[HIDDEN][S], c[S];         /* the same [unit][score], and its biases */
    double scaled[256];
} State;

static double *weight(State *s, int pixel, int unit)
{
    if (unit >= 48)
        return (double *)&s->last[pixel] + unit - 48;
    return (double *)s->w[unit / (W * L)][pixel] + unit % (W * L);
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

#define EACH(v, count) UNROLL for (int v = 0; v < count; v++)
#define EACH_BLOCK(k) UNROLL for (int k = 0; k < BLOCKS; k++)

/* z = b + the weighted pixels. */
INLINE void forward(const State *s, const unsigned char *x, vd *z)
{
    v2 last;
    memcpy(&last, (const double *)s->b + 48, sizeof last);
    EACH_BLOCK(k)
    {
        vd a[W];
        EACH(v, W) a[v] = s->b[k * W + v];
        for (int i = 0; i < PIXELS; i++) {
            double xi = s->scaled[x[i]];
            EACH(v, W) a[v] += s->w[k][i][v] * xi;
            if (k == 0) last += s->last[i] * xi;
        }
        EACH(v, W) z[k * W + v] = a[v];
    }
    for (int v = 48 / L; v < V; v++)
        z[v] = (vd){0};
    memcpy((double *)z + 48, &last, sizeof last);
}

/* From the sums of the first layer to their gradients; updates the second layer and the first biases. */
INLINE double upper(State *s, const vd *z, int label, double rate, vd *gz)
{
    vd h[V], z2[S], d[S], g[S];
    EACH(v, S) z2[v] = s->c[v];
    EACH(v, V) h[v] = positive(z[v]);
    for (int k = 0; k < HIDDEN; k++) {
        double hk = ((double *)h)[k];
        EACH(v, S) z2[v] += s->t[k][v] * hk;
    }
    EACH(v, S) d[v] = z2[v];
    ((double *)d)[label] -= 1.0;
    EACH(v, S) g[v] = 2.0 * d[v];
    for (int at = 0; at < V; at += 7) {
        vd gh[7] = {0};
        for (int j = SCORES - 1; j >= 0; j--) {
            double gj = ((double *)g)[j];
            EACH(v, 7)
            {
                gh[v] += s->u[j][at + v] * gj;
                s->u[j][at + v] -= rate * (h[at + v] * gj);
            }
        }
        EACH(v, 7) gz[at + v] = gh[v];
    }
    for (int k = 0; k < HIDDEN; k++) {
        double hk = ((double *)h)[k];
        EACH(v, S) s->t[k][v] -= rate * (hk * g[v]);
    }
    EACH(v, S) s->c[v] -= rate * g[v];
    EACH(v, V)
    {
        gz[v] = gated(h[v], gz[v]);
        s->b[v] -= rate * gz[v];
    }
    double loss = 0.0;
    for (int j = 0; j < SCORES; j++)
        loss += pow(((double *)d)[j], 2.0);
    return loss;
}

/* Whether w - rate * (0.0 * gz) is w for all weights of a zero pixel. */
INLINE int keeps(const vd *gz, double rate)
{
    vd sum = {0};
    EACH(v, V) sum += gz[v] * 0.0;
    double all = 0.0;
    EACH(l, L) all += sum[l];
    return all == 0.0 && rate > 0.0;
}

INLINE void update(State *s, const unsigned char *x, const vd *gz, double rate)
{
    int kept = keeps(gz, rate);
    v2 last;
    memcpy(&last, (const double *)gz + 48, sizeof last);
    UNROLL for (int k = BLOCKS - 1; k >= 0; k--)
    {
        vd g[W];
        EACH(v, W) g[v] = gz[k * W + v];
        for (int i = PIXELS - 1; i >= 0; i--) {
            if (kept && !x[i]) continue;
            double xi = s->scaled[x[i]];
            EACH(v, W) s->w[k][i][v] -= rate * (xi * g[v]);
            if (k == 0) s->last[i] -= rate * (xi * last);
        }
    }
}

static double step(State *s, const Row *row)
{
    vd z[V], gz[V];
    forward(s, row->inputs, z);
    double loss = upper(s, z, *(const unsigned char *)row->targets, row->rate, gz);
    update(s, row->inputs, gz, row->rate);
    return loss;
}

REFERENCE()

EXPORT void reference_loop(State *s, const Row *rows, long count, double *losses)
{
    vd z[V], gz[V];
    if (count)
        forward(s, rows[0].inputs, z);
    for (long n = 0; n < count; n++) {
        const unsigned char *x = rows[n].inputs;
        double rate = rows[n].rate;
        losses[n] = upper(s, z, *(const unsigned char *)rows[n].targets, rate, gz);
        int kept = keeps(gz, rate);
        if (n + 1 == count) {
            update(s, x, gz, rate);
            return;
        }
        const unsigned char *next = rows[n + 1].inputs;
        v2 last, last_g;
        memcpy(&last, (const double *)s->b + 48, sizeof last);
        memcpy(&last_g, (const double *)gz + 48, sizeof last_g);
        EACH_BLOCK(k)
        {
            vd a[W], g[W];
            EACH(v, W) a[v] = s->b[k * W + v], g[v] = gz[k * W + v];
            for (int i = 0; i < PIXELS; i++) {
                double xi = s->scaled[x[i]], yi = s->scaled[next[i]];
                UNROLL for (int v = 0; v < W * L; v += 8) __builtin_prefetch((double *)s->w[k][i + 8] + v, 1);
                if (kept && !x[i]) {
                    EACH(v, W) a[v] += s->w[k][i][v] * yi;
                    if (k == 0) last += s->last[i] * yi;
                    continue;
                }
                EACH(v, W)
                {
                    vd w = s->w[k][i][v] - rate * (xi * g[v]);
                    s->w[k][i][v] = w;
                    a[v] += w * yi;
                }
                if (k == 0) {
                    v2 w = s->last[i] - rate * (xi * last_g);
                    s->last[i] = w;
                    last += w * yi;
                }
            }
            EACH(v, W) z[k * W + v] = a[v];
        }
        memcpy((double *)z + 48, &last, sizeof last);
    }
}
