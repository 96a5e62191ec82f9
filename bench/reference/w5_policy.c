/* W5: policy 4-64-64-2 with tanh, 32 observations a step, mean squared error, Adam.  float32, fast.
 *
 * How it was tuned: the 32 observations are the two vectors of lanes for everything that is a map of units to units,
 * because tanh then comes for free in the right shape, and one copy of the weights serves both directions: 8 units x 2
 * vectors are 16 sums in registers.  The gradients of weights are sums over observations, so the outputs of the first
 * layer are transposed once (16 x 16 blocks) to have units as lanes: 4 units x 4 vectors.  Each group of finished
 * gradients goes straight into Adam, which reads and writes weights and moments once.  Its square root and quotient
 * are approximations with one Newton step (1 ulp or so), 2 times as fast as the instructions. */
#include "harness.h"
#include "single.h"

enum { N = 32, IN = 4, UNITS = 64, OUT = 2 };

/* Weights with both moments: rows of `UNITS` floats. */
typedef struct {
    float p[UNITS], m[UNITS], v[UNITS];
} Line __attribute__((aligned(64)));

typedef struct {
    Line w[IN], b;        /* first layer, [input][unit] */
    Line u[UNITS], c;     /* second, [unit][unit below] */
    Line o[OUT], d;       /* third; the biases of the outputs in the first two places of d */
    v16 x[IN][2], h[UNITS][2], a[UNITS][2], g[UNITS][2];
    float t[N][UNITS] __attribute__((aligned(64)));
} State;

static float *place(State *s, int k)
{
    if (k < 5 * UNITS)
        return k % 5 < 4 ? s->w[k % 5].p + k / 5 : s->b.p + k / 5;
    k -= 5 * UNITS;
    if (k < 65 * UNITS)
        return k % 65 < 64 ? s->u[k / 65].p + k % 65 : s->c.p + k / 65;
    k -= 65 * UNITS;
    return k % 65 < 64 ? s->o[k / 65].p + k % 65 : s->d.p + k / 65;
}

enum { COUNT = 5 * UNITS + 65 * UNITS + 65 * OUT };

static void open_state(State *s, const double *p)
{
    for (int k = 0; k < COUNT; k++)
        *place(s, k) = p[k];
}

static void parameters(const State *s, double *p)
{
    for (int k = 0; k < COUNT; k++)
        p[k] = *place((State *)s, k);
}

typedef struct {
    float rate, root;
} Pace;

/* m / (sqrt(correction * v) + epsilon): the square root of the correction is a factor of the line's. */
INLINE void adam(Line *line, int at, v16 g, Pace pace)
{
    v16 m = 0.9f * load(line->m + at) + 0.1f * g;
    v16 v = 0.999f * load(line->v + at) + 0.001f * (g * g);
    store(line->m + at, m);
    store(line->v + at, v);
    store(line->p + at, load(line->p + at) - pace.rate * m * reciprocal(root(v) * pace.root + 1e-8f));
}

static __attribute__((noinline)) void forward(State *s, const float *x)
{
    for (int k = 0; k < N; k++)
        for (int i = 0; i < IN; i++)
            ((float *)s->x[i])[k] = x[IN * k + i];
    for (int j = 0; j < UNITS; j++)
        UNROLL for (int n = 0; n < 2; n++)
        {
            v16 z = all(s->b.p[j]);
            UNROLL for (int i = 0; i < IN; i++) z += s->x[i][n] * s->w[i].p[j];
            s->h[j][n] = hyperbolic(z);
        }
    for (int j = 0; j < UNITS; j += 8) {
        v16 z[8][2];
        UNROLL for (int i = 0; i < 8; i++) z[i][0] = z[i][1] = all(s->c.p[j + i]);
        for (int k = 0; k < UNITS; k++)
            UNROLL for (int i = 0; i < 8; i++)
            {
                z[i][0] += s->h[k][0] * s->u[j + i].p[k];
                z[i][1] += s->h[k][1] * s->u[j + i].p[k];
            }
        UNROLL for (int i = 0; i < 8; i++) s->a[j + i][0] = hyperbolic(z[i][0]), s->a[j + i][1] = hyperbolic(z[i][1]);
    }
}

/* The loss; the last layer moves; s->g becomes the gradients of the sums of the second layer. */
static __attribute__((noinline)) double output(State *s, const float *goals, Pace pace)
{
    v16 d[OUT][2], squares = all(0.0f);
    for (int c = 0; c < OUT; c++)
        for (int n = 0; n < 2; n++) {
            v16 part[4] = {all(s->d.p[c])}, goal;
            for (int k = 0; k < UNITS; k += 4)
                UNROLL for (int i = 0; i < 4; i++) part[i] += s->a[k + i][n] * s->o[c].p[k + i];
            for (int k = 0; k < 16; k++)
                goal[k] = goals[OUT * (16 * n + k) + c];
            d[c][n] = part[0] + part[1] + part[2] + part[3] - goal;
            squares += d[c][n] * d[c][n];
            d[c][n] *= 2.0f / (OUT * N);
        }
    for (int k = 0; k < UNITS; k++)
        UNROLL for (int n = 0; n < 2; n++)
            s->g[k][n] = (d[0][n] * s->o[0].p[k] + d[1][n] * s->o[1].p[k]) * (1.0f - s->a[k][n] * s->a[k][n]);
    for (int c = 0; c < OUT; c++)
        for (int k = 0; k < UNITS; k += 16) {
            v16 r[16];
            UNROLL for (int i = 0; i < 16; i++) r[i] = d[c][0] * s->a[k + i][0] + d[c][1] * s->a[k + i][1];
            adam(&s->o[c], k, sums(r), pace);
        }
    v16 r[16] = {d[0][0] + d[0][1], d[1][0] + d[1][1], squares};
    v16 total = sums(r);
    adam(&s->d, 0, total, pace);
    return total[2] / (OUT * N);
}

/* Turns [unit][observation] into [observation][unit]. */
INLINE void turned(const v16 (*rows)[2], float (*to)[UNITS])
{
    for (int k = 0; k < UNITS; k += 16)
        UNROLL for (int n = 0; n < 2; n++)
        {
            v16 r[16];
            UNROLL for (int i = 0; i < 16; i++) r[i] = rows[k + i][n];
            transpose16(r);
            UNROLL for (int i = 0; i < 16; i++) *(v16 *)(to[16 * n + i] + k) = r[i];
        }
}

static __attribute__((noinline)) void middle(State *s, Pace pace)
{
    turned(s->h, s->t);
    for (int k = 0; k < UNITS; k += 8) { /* gradients of the first layer's sums, in the place of its outputs */
        v16 r[8][2] = {0};
        for (int j = 0; j < UNITS; j++)
            UNROLL for (int i = 0; i < 8; i++)
            {
                r[i][0] += s->g[j][0] * s->u[j].p[k + i];
                r[i][1] += s->g[j][1] * s->u[j].p[k + i];
            }
        UNROLL for (int i = 0; i < 8; i++) UNROLL for (int n = 0; n < 2; n++)
        {
            v16 h = s->h[k + i][n];
            s->h[k + i][n] = r[i][n] * (1.0f - h * h);
        }
    }
    for (int j = 0; j < UNITS; j += 4) {
        v16 r[4][4] = {0};
        for (int n = 0; n < N; n++) {
            v16 t[4];
            UNROLL for (int v = 0; v < 4; v++)
            {
                t[v] = *(const v16 *)(s->t[n] + 16 * v);
                IN_REGISTER(t[v]);
            }
            UNROLL for (int i = 0; i < 4; i++)
            {
                float g = ((const float *)s->g[j + i])[n];
                UNROLL for (int v = 0; v < 4; v++) r[i][v] += t[v] * g;
            }
        }
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int v = 0; v < 4; v++) adam(&s->u[j + i], 16 * v, r[i][v], pace);
    }
    for (int k = 0; k < UNITS; k += 16) {
        v16 r[16];
        UNROLL for (int i = 0; i < 16; i++) r[i] = s->g[k + i][0] + s->g[k + i][1];
        adam(&s->c, k, sums(r), pace);
    }
}

static __attribute__((noinline)) void first(State *s, Pace pace)
{
    turned(s->h, s->t);
    v16 r[IN + 1][4] = {0};
    for (int n = 0; n < N; n++)
        UNROLL for (int v = 0; v < 4; v++)
        {
            v16 g = *(const v16 *)(s->t[n] + 16 * v);
            IN_REGISTER(g);
            UNROLL for (int i = 0; i < IN; i++) r[i][v] += g * ((const float *)s->x[i])[n];
            r[IN][v] += g;
        }
    UNROLL for (int v = 0; v < 4; v++)
    {
        UNROLL for (int i = 0; i < IN; i++) adam(&s->w[i], 16 * v, r[i][v], pace);
        adam(&s->b, 16 * v, r[IN][v], pace);
    }
}

static double step(State *s, const Row *row)
{
    Pace pace = {row->rate, __builtin_sqrt(row->correction)};
    forward(s, row->inputs);
    double loss = output(s, row->targets, pace);
    middle(s, pace);
    first(s, pace);
    return loss;
}

REFERENCE()
