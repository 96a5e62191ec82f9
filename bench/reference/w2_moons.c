/* W2: two moons, 2-16-16-1, 100 points a step, hinge loss and L2.  float64, strict: every sum in the order of the
 * Python step, which adds to a gradient first its L2 term, then the points from the last to the first.
 *
 * How it was tuned: the 16 units are two vectors of 8.  Blocks of 8 points from the last to the first go forward, and
 * at once backward, because the gradient of a point's score needs no other point.  Four points at a time share the
 * weights of the middle layer (8 sums in registers); the scores of 8 points are added lane by lane after a transpose.
 * The 256 gradients of the middle layer take turns in registers, half at a time, over 24 points.  The sum of the
 * squares, 337 additions one after the other, is spread over the blocks, where the processor overlaps it.
 * 100 points are padded to 104 whose gradient is zero. */
#include "harness.h"
#include "wide.h"

/* V vectors of units; at most R rows of V sums, or a row of WIDE of them, are in registers together. */
enum { POINTS = 100, PADDED = 104, N = 16, COUNT = 337, BLOCK = 24, V = N / L, R = L == 8 ? 4 : 2, WIDE = L == 2 ? 4 : V };
#define EACH(v) UNROLL for (int v = 0; v < V; v++)

typedef struct {
    double p[COUNT + 7] __attribute__((aligned(64))); /* as in Python: [unit][2] and bias, [unit][16] and bias, [16], bias */
    vd w[3][V];  /* first layer: [x, y, bias][unit] */
    vd u[N][V];  /* middle layer: [unit][unit below] */
    vd t[N][V];  /* the same, [unit below][unit] */
    vd c[V], o[V];
} State;

#define MIDDLE 48
#define LAST (MIDDLE + 17 * N)

static void arrange(State *s)
{
    const double *p = s->p;
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < 3; k++)
            ((double *)s->w[k])[j] = p[3 * j + k];
        for (int k = 0; k < N; k++)
            ((double *)s->u[j])[k] = ((double *)s->t[k])[j] = p[MIDDLE + 17 * j + k];
        ((double *)s->c)[j] = p[MIDDLE + 17 * j + N];
        ((double *)s->o)[j] = p[LAST + j];
    }
}

static void open_state(State *s, const double *p)
{
    memcpy(s->p, p, COUNT * sizeof *p);
    arrange(s);
}

static void parameters(const State *s, double *p) { memcpy(p, s->p, COUNT * sizeof *p); }

typedef struct {
    vd h[BLOCK][V], a[BLOCK][V]; /* outputs of the first and the middle layer */
    vd gh[BLOCK][V], ga[BLOCK][V];
    double g[BLOCK] __attribute__((aligned(64)));
} Block;

/* Both layers of `count` points. */
INLINE void layers(const State *s, const double *x, Block *b, int count)
{
    for (int n = 0; n < count; n += R) {
        UNROLL for (int i = 0; i < R; i++) EACH(v)
            b->h[n + i][v] = positive(s->w[2][v] + s->w[0][v] * x[2 * (n + i)] + s->w[1][v] * x[2 * (n + i) + 1]);
        UNROLL for (int at = 0; at < V; at += WIDE)
        {
            vd z[R][WIDE];
            UNROLL for (int i = 0; i < R; i++) UNROLL for (int v = 0; v < WIDE; v++) z[i][v] = s->c[at + v];
            for (int k = 0; k < N; k++)
                UNROLL for (int i = 0; i < R; i++)
                {
                    double h = ((const double *)b->h[n + i])[k];
                    UNROLL for (int v = 0; v < WIDE; v++) z[i][v] += s->t[k][at + v] * h;
                }
            UNROLL for (int i = 0; i < R; i++) UNROLL for (int v = 0; v < WIDE; v++) b->a[n + i][at + v] = positive(z[i][v]);
        }
    }
}

/* Scores of L points: their products transposed, then added unit by unit. */
INLINE vd scores(const State *s, const vd (*a)[V])
{
    vd sum = s->p[COUNT - 1] - (vd){0};
    EACH(v)
    {
        vd r[L];
        UNROLL for (int i = 0; i < L; i++) r[i] = s->o[v] * a[i][v];
        transpose(r);
        UNROLL for (int i = 0; i < L; i++) sum += r[i];
    }
    return sum;
}

/* Gradients of the sums of both layers. */
INLINE void backward(const State *s, Block *b, int count)
{
    for (int n = 0; n < count; n += R) {
        UNROLL for (int i = 0; i < R; i++) EACH(v) b->ga[n + i][v] = gated(b->a[n + i][v], s->o[v] * b->g[n + i]);
        UNROLL for (int at = 0; at < V; at += WIDE)
        {
            vd r[R][WIDE] = {0};
            for (int j = N - 1; j >= 0; j--)
                UNROLL for (int i = 0; i < R; i++)
                {
                    double g = ((const double *)b->ga[n + i])[j];
                    UNROLL for (int v = 0; v < WIDE; v++) r[i][v] += s->u[j][at + v] * g;
                }
            UNROLL for (int i = 0; i < R; i++) UNROLL for (int v = 0; v < WIDE; v++)
                b->gh[n + i][at + v] = gated(b->h[n + i][at + v], r[i][v]);
        }
    }
}

typedef struct {
    vd u[N][V], w[3][V], c[V], o[V];
    double bias;
} Gradients;

INLINE void accumulate(Gradients *d, const double *x, const Block *b, int count)
{
    enum { ROWS = L == 8 ? 8 : 2 }; /* of the middle layer, in registers */
    for (int j = 0; j < N; j += ROWS)
        for (int at = 0; at < V; at += WIDE) {
            vd r[ROWS][WIDE];
            UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < WIDE; v++) r[i][v] = d->u[j + i][at + v];
            for (int n = count - 1; n >= 0; n--) {
                vd h[WIDE];
                UNROLL for (int v = 0; v < WIDE; v++) h[v] = b->h[n][at + v];
                UNROLL for (int i = 0; i < ROWS; i++)
                {
                    double g = ((const double *)b->ga[n])[j + i];
                    UNROLL for (int v = 0; v < WIDE; v++) r[i][v] += h[v] * g;
                }
            }
            UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < WIDE; v++) d->u[j + i][at + v] = r[i][v];
        }
    enum { SOME = 2 };
    for (int at = 0; at < V; at += SOME) {
        vd w[3][SOME], c[SOME], o[SOME];
        UNROLL for (int v = 0; v < SOME; v++)
        {
            UNROLL for (int k = 0; k < 3; k++) w[k][v] = d->w[k][at + v];
            c[v] = d->c[at + v], o[v] = d->o[at + v];
        }
        double bias = d->bias;
        for (int n = count - 1; n >= 0; n--) {
            double g = b->g[n];
            UNROLL for (int v = 0; v < SOME; v++)
            {
                vd gh = b->gh[n][at + v];
                w[0][v] += x[2 * n] * gh;
                w[1][v] += x[2 * n + 1] * gh;
                w[2][v] += gh;
                c[v] += b->ga[n][at + v];
                o[v] += b->a[n][at + v] * g;
            }
            bias += g;
        }
        UNROLL for (int v = 0; v < SOME; v++)
        {
            UNROLL for (int k = 0; k < 3; k++) d->w[k][at + v] = w[k][v];
            d->c[at + v] = c[v], d->o[at + v] = o[v];
        }
        if (at + SOME == V)
            d->bias = bias;
    }
}

static void descend(State *s, const Gradients *d, double rate)
{
    double *p = s->p;
    for (int j = 0; j < N; j++)
        EACH(v)
        {
            s->u[j][v] -= rate * d->u[j][v];
            memcpy(p + MIDDLE + 17 * j + L * v, &s->u[j][v], sizeof(vd));
        }
    EACH(v)
    {
        for (int k = 0; k < 3; k++)
            s->w[k][v] -= rate * d->w[k][v];
        s->c[v] -= rate * d->c[v];
        s->o[v] -= rate * d->o[v];
        memcpy(p + LAST + L * v, &s->o[v], sizeof(vd));
    }
    p[COUNT - 1] -= rate * d->bias;
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < 3; k++)
            p[3 * j + k] = ((double *)s->w[k])[j];
        p[MIDDLE + 17 * j + N] = ((double *)s->c)[j];
    }
    for (int j = 0; j < N; j += L)
        for (int k = 0; k < V; k++) {
            vd r[L];
            UNROLL for (int i = 0; i < L; i++) r[i] = s->u[j + i][k];
            transpose(r);
            UNROLL for (int i = 0; i < L; i++) s->t[L * k + i][j / L] = r[i];
        }
}

static double step(State *s, const Row *row)
{
    double x[2 * PADDED] __attribute__((aligned(64))), y[PADDED] __attribute__((aligned(64)));
    double losses[PADDED] __attribute__((aligned(64)));
    memcpy(x, row->inputs, 2 * POINTS * sizeof *x);
    memcpy(y, row->targets, POINTS * sizeof *y);
    memset(x + 2 * POINTS, 0, 2 * (PADDED - POINTS) * sizeof *x);
    memset(y + POINTS, 0, (PADDED - POINTS) * sizeof *y);
    const double each = (1.0 / POINTS) * 1.0, decay = 1e-4 * 1.0;
    Gradients d;
    for (int j = 0; j < N; j++)
        EACH(v) d.u[j][v] = s->u[j][v] * decay + s->u[j][v] * decay;
    EACH(v)
    {
        for (int k = 0; k < 3; k++)
            d.w[k][v] = s->w[k][v] * decay + s->w[k][v] * decay;
        d.c[v] = s->c[v] * decay + s->c[v] * decay;
        d.o[v] = s->o[v] * decay + s->o[v] * decay;
    }
    d.bias = s->p[COUNT - 1] * decay + s->p[COUNT - 1] * decay;
    double squares = 0.0;
    int squared = 0;
    Block b;
    for (int end = PADDED; end > 0;) {
        int count = end % BLOCK ? end % BLOCK : BLOCK, begin = end - count;
        layers(s, x + 2 * begin, &b, count);
        for (int n = 0; n < count; n += L) {
            vd minus = -*(const vd *)(y + begin + n);
            vd margin = 1.0 + minus * scores(s, b.a + n);
            *(vd *)(losses + begin + n) = positive(margin);
            *(vd *)(b.g + n) = minus * gated(margin, each - (vd){0});
        }
        for (int upto = squared + 68 < COUNT ? squared + 68 : COUNT; squared < upto; squared++)
            squares += s->p[squared] * s->p[squared];
        backward(s, &b, count);
        accumulate(&d, x + 2 * begin, &b, count);
        end = begin;
    }
    double total = 0.0;
    for (int n = 0; n < POINTS; n++)
        total += losses[n];
    descend(s, &d, row->rate);
    return total * (1.0 / POINTS) + 1e-4 * squares;
}

REFERENCE()
