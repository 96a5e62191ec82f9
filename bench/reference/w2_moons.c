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

typedef double v8 __attribute__((vector_size(64)));
typedef long m8 __attribute__((vector_size(64)));

enum { POINTS = 100, PADDED = 104, N = 16, COUNT = 337, BLOCK = 24 };
#define UNROLL _Pragma("GCC unroll 16")

typedef struct {
    double p[COUNT + 7] __attribute__((aligned(64))); /* as in Python: [unit][2] and bias, [unit][16] and bias, [16], bias */
    v8 w[3][2];  /* first layer: [x, y, bias][unit] */
    v8 u[N][2];  /* middle layer: [unit][unit below] */
    v8 t[N][2];  /* the same, [unit below][unit] */
    v8 c[2], o[2];
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

static inline v8 positive(v8 z) { return (v8)((z > 0.0) & (m8)z); }
static inline v8 gated(v8 h, v8 g) { return (v8)((h > 0.0) & (m8)g); }

static inline v8 pick(v8 a, v8 b, m8 lanes) { return __builtin_shuffle(a, b, lanes); }

static inline __attribute__((always_inline)) void transpose(v8 r[8])
{
    v8 a[8], b[8];
    for (int k = 0; k < 8; k += 2) {
        a[k] = pick(r[k], r[k + 1], (m8){0, 8, 2, 10, 4, 12, 6, 14});
        a[k + 1] = pick(r[k], r[k + 1], (m8){1, 9, 3, 11, 5, 13, 7, 15});
    }
    for (int k = 0; k < 8; k += 4)
        for (int i = 0; i < 2; i++) {
            b[k + i] = pick(a[k + i], a[k + i + 2], (m8){0, 1, 8, 9, 4, 5, 12, 13});
            b[k + i + 2] = pick(a[k + i], a[k + i + 2], (m8){2, 3, 10, 11, 6, 7, 14, 15});
        }
    for (int k = 0; k < 4; k++) {
        r[k] = pick(b[k], b[k + 4], (m8){0, 1, 2, 3, 8, 9, 10, 11});
        r[k + 4] = pick(b[k], b[k + 4], (m8){4, 5, 6, 7, 12, 13, 14, 15});
    }
}

typedef struct {
    v8 h[BLOCK][2], a[BLOCK][2]; /* outputs of the first and the middle layer */
    v8 gh[BLOCK][2], ga[BLOCK][2];
    double g[BLOCK] __attribute__((aligned(64)));
} Block;

/* Both layers of `count` points. */
static inline __attribute__((always_inline)) void layers(const State *s, const double *x, Block *b, int count)
{
    for (int n = 0; n < count; n += 4) {
        v8 z[4][2];
        UNROLL for (int i = 0; i < 4; i++) for (int v = 0; v < 2; v++)
        {
            v8 first = s->w[2][v] + s->w[0][v] * x[2 * (n + i)] + s->w[1][v] * x[2 * (n + i) + 1];
            b->h[n + i][v] = positive(first);
            z[i][v] = s->c[v];
        }
        for (int k = 0; k < N; k++) {
            v8 t0 = s->t[k][0], t1 = s->t[k][1];
            UNROLL for (int i = 0; i < 4; i++)
            {
                double h = ((const double *)b->h[n + i])[k];
                z[i][0] += t0 * h;
                z[i][1] += t1 * h;
            }
        }
        UNROLL for (int i = 0; i < 4; i++) for (int v = 0; v < 2; v++) b->a[n + i][v] = positive(z[i][v]);
    }
}

/* Scores of 8 points: their products transposed, then added unit by unit. */
static inline __attribute__((always_inline)) v8 scores(const State *s, const v8 (*a)[2])
{
    v8 sum = s->p[COUNT - 1] - (v8){0};
    for (int v = 0; v < 2; v++) {
        v8 r[8];
        UNROLL for (int i = 0; i < 8; i++) r[i] = s->o[v] * a[i][v];
        transpose(r);
        UNROLL for (int i = 0; i < 8; i++) sum += r[i];
    }
    return sum;
}

/* Gradients of the sums of both layers. */
static inline __attribute__((always_inline)) void backward(const State *s, Block *b, int count)
{
    for (int n = 0; n < count; n += 4) {
        v8 r[4][2] = {0};
        UNROLL for (int i = 0; i < 4; i++) for (int v = 0; v < 2; v++)
            b->ga[n + i][v] = gated(b->a[n + i][v], s->o[v] * b->g[n + i]);
        for (int j = N - 1; j >= 0; j--) {
            v8 u0 = s->u[j][0], u1 = s->u[j][1];
            UNROLL for (int i = 0; i < 4; i++)
            {
                double g = ((const double *)b->ga[n + i])[j];
                r[i][0] += u0 * g;
                r[i][1] += u1 * g;
            }
        }
        UNROLL for (int i = 0; i < 4; i++) for (int v = 0; v < 2; v++)
            b->gh[n + i][v] = gated(b->h[n + i][v], r[i][v]);
    }
}

typedef struct {
    v8 u[N][2], w[3][2], c[2], o[2];
    double bias;
} Gradients;

static inline __attribute__((always_inline)) void accumulate(Gradients *d, const double *x, const Block *b, int count)
{
    for (int j = 0; j < N; j += 8) {
        v8 r[8][2];
        UNROLL for (int i = 0; i < 8; i++) r[i][0] = d->u[j + i][0], r[i][1] = d->u[j + i][1];
        for (int n = count - 1; n >= 0; n--) {
            v8 h0 = b->h[n][0], h1 = b->h[n][1];
            UNROLL for (int i = 0; i < 8; i++)
            {
                double g = ((const double *)b->ga[n])[j + i];
                r[i][0] += h0 * g;
                r[i][1] += h1 * g;
            }
        }
        UNROLL for (int i = 0; i < 8; i++) d->u[j + i][0] = r[i][0], d->u[j + i][1] = r[i][1];
    }
    v8 w[3][2], c[2], o[2];
    memcpy(w, d->w, sizeof w), memcpy(c, d->c, sizeof c), memcpy(o, d->o, sizeof o);
    double bias = d->bias;
    for (int n = count - 1; n >= 0; n--) {
        double g = b->g[n];
        UNROLL for (int v = 0; v < 2; v++)
        {
            v8 gh = b->gh[n][v];
            w[0][v] += x[2 * n] * gh;
            w[1][v] += x[2 * n + 1] * gh;
            w[2][v] += gh;
            c[v] += b->ga[n][v];
            o[v] += b->a[n][v] * g;
        }
        bias += g;
    }
    memcpy(d->w, w, sizeof w), memcpy(d->c, c, sizeof c), memcpy(d->o, o, sizeof o);
    d->bias = bias;
}

static void descend(State *s, const Gradients *d, double rate)
{
    double *p = s->p;
    for (int j = 0; j < N; j++) {
        for (int v = 0; v < 2; v++) {
            s->u[j][v] -= rate * d->u[j][v];
            memcpy(p + MIDDLE + 17 * j + 8 * v, &s->u[j][v], sizeof(v8));
        }
    }
    for (int v = 0; v < 2; v++) {
        for (int k = 0; k < 3; k++)
            s->w[k][v] -= rate * d->w[k][v];
        s->c[v] -= rate * d->c[v];
        s->o[v] -= rate * d->o[v];
        memcpy(p + LAST + 8 * v, &s->o[v], sizeof(v8));
    }
    p[COUNT - 1] -= rate * d->bias;
    for (int j = 0; j < N; j++) {
        for (int k = 0; k < 3; k++)
            p[3 * j + k] = ((double *)s->w[k])[j];
        p[MIDDLE + 17 * j + N] = ((double *)s->c)[j];
    }
    for (int j = 0; j < N; j += 8)
        for (int k = 0; k < 2; k++) {
            v8 r[8];
            UNROLL for (int i = 0; i < 8; i++) r[i] = s->u[j + i][k];
            transpose(r);
            UNROLL for (int i = 0; i < 8; i++) s->t[8 * k + i][j / 8] = r[i];
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
        for (int v = 0; v < 2; v++)
            d.u[j][v] = s->u[j][v] * decay + s->u[j][v] * decay;
    for (int v = 0; v < 2; v++) {
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
        for (int n = 0; n < count; n += 8) {
            v8 minus = -*(const v8 *)(y + begin + n);
            v8 margin = 1.0 + minus * scores(s, b.a + n);
            *(v8 *)(losses + begin + n) = positive(margin);
            *(v8 *)(b.g + n) = minus * gated(margin, each - (v8){0});
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
