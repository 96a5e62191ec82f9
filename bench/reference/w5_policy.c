/* W5: policy 4-64-64-2 with tanh, 32 observations a step, mean squared error, Adam.  float32, fast.
 *
 * How it was tuned: the 32 observations are the lanes of two vectors, or more narrow ones, for everything that is a map of
 * units to units, because tanh then comes for free in the right shape, and one copy of the weights serves both directions: 8 units x 2
 * vectors are 16 sums in registers.  The gradients of weights are sums over observations, so the outputs of the first
 * layer are transposed once to have units as lanes: 4 units x 4 vectors.  Each group of finished
 * gradients goes straight into Adam, which reads and writes weights and moments once.  Its square root and quotient
 * are approximations with one Newton step (1 ulp or so), 2 times as fast as the instructions. */
#include "harness.h"
#include "single.h"

/* V vectors of observations, and W of units; so many units are computed together, with P vectors of observations. */
enum { N = 32, IN = 4, UNITS = 64, OUT = 2, V = N / L, W = UNITS / L };
enum { TOGETHER = L == 16 ? 8 : 4, P = 2, ROWS = L == 16 ? 4 : 2, Q = 4 };

/* Weights with both moments: rows of `UNITS` floats. */
typedef struct {
    float p[UNITS], m[UNITS], v[UNITS];
} Line __attribute__((aligned(64)));

typedef struct {
    Line w[IN], b;        /* first layer, [input][unit] */
    Line u[UNITS], c;     /* second, [unit][unit below] */
    Line o[OUT], d;       /* third; the biases of the outputs in the first two places of d */
    vf x[IN][V], h[UNITS][V], a[UNITS][V], g[UNITS][V];
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
INLINE void adam(Line *line, int at, vf g, Pace pace)
{
    vf m = 0.9f * load(line->m + at) + 0.1f * g;
    vf v = 0.999f * load(line->v + at) + 0.001f * (g * g);
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
        UNROLL for (int n = 0; n < V; n++)
        {
            vf z = all(s->b.p[j]);
            UNROLL for (int i = 0; i < IN; i++) z += s->x[i][n] * s->w[i].p[j];
            s->h[j][n] = hyperbolic(z);
        }
    for (int j = 0; j < UNITS; j += TOGETHER)
        for (int at = 0; at < V; at += P) {
            vf z[TOGETHER][P];
            UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int n = 0; n < P; n++) z[i][n] = all(s->c.p[j + i]);
            for (int k = 0; k < UNITS; k++)
                UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int n = 0; n < P; n++)
                    z[i][n] += s->h[k][at + n] * s->u[j + i].p[k];
            UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int n = 0; n < P; n++)
                s->a[j + i][at + n] = hyperbolic(z[i][n]);
        }
}

/* The loss; the last layer moves; s->g becomes the gradients of the sums of the second layer. */
static __attribute__((noinline)) double output(State *s, const float *goals, Pace pace)
{
    vf d[OUT][V], squares = all(0.0f);
    for (int c = 0; c < OUT; c++)
        for (int n = 0; n < V; n++) {
            vf part[4] = {all(s->d.p[c])}, goal;
            for (int k = 0; k < UNITS; k += 4)
                UNROLL for (int i = 0; i < 4; i++) part[i] += s->a[k + i][n] * s->o[c].p[k + i];
            for (int k = 0; k < L; k++)
                goal[k] = goals[OUT * (L * n + k) + c];
            d[c][n] = part[0] + part[1] + part[2] + part[3] - goal;
            squares += d[c][n] * d[c][n];
            d[c][n] *= 2.0f / (OUT * N);
        }
    for (int k = 0; k < UNITS; k++)
        UNROLL for (int n = 0; n < V; n++)
            s->g[k][n] = (d[0][n] * s->o[0].p[k] + d[1][n] * s->o[1].p[k]) * (1.0f - s->a[k][n] * s->a[k][n]);
    for (int c = 0; c < OUT; c++)
        for (int k = 0; k < UNITS; k += L) {
            vf r[L];
            UNROLL for (int i = 0; i < L; i++)
            {
                r[i] = d[c][0] * s->a[k + i][0];
                UNROLL for (int n = 1; n < V; n++) r[i] += d[c][n] * s->a[k + i][n];
            }
            adam(&s->o[c], k, sums(r), pace);
        }
    vf r[L] = {d[0][0], d[1][0], squares};
    UNROLL for (int n = 1; n < V; n++) r[0] += d[0][n], r[1] += d[1][n];
    vf total = sums(r);
    adam(&s->d, 0, total, pace);
    return total[2] / (OUT * N);
}

/* Turns [unit][observation] into [observation][unit]. */
INLINE void turned(const vf (*rows)[V], float (*to)[UNITS])
{
    for (int k = 0; k < UNITS; k += L)
        UNROLL for (int n = 0; n < V; n++)
        {
            vf r[L];
            UNROLL for (int i = 0; i < L; i++) r[i] = rows[k + i][n];
            transpose(r);
            UNROLL for (int i = 0; i < L; i++) *(vf *)(to[L * n + i] + k) = r[i];
        }
}

static __attribute__((noinline)) void middle(State *s, Pace pace)
{
    turned(s->h, s->t);
    for (int k = 0; k < UNITS; k += TOGETHER) /* gradients of the first layer's sums, in the place of its outputs */
        for (int at = 0; at < V; at += P) {
            vf r[TOGETHER][P] = {0};
            for (int j = 0; j < UNITS; j++)
                UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int n = 0; n < P; n++)
                    r[i][n] += s->g[j][at + n] * s->u[j].p[k + i];
            UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int n = 0; n < P; n++)
            {
                vf h = s->h[k + i][at + n];
                s->h[k + i][at + n] = r[i][n] * (1.0f - h * h);
            }
        }
    for (int j = 0; j < UNITS; j += ROWS)
        for (int at = 0; at < W; at += Q) {
            vf r[ROWS][Q] = {0};
            for (int n = 0; n < N; n++) {
                vf t[Q];
                UNROLL for (int v = 0; v < Q; v++)
                {
                    t[v] = *(const vf *)(s->t[n] + L * (at + v));
                    IN_REGISTER(t[v]);
                }
                UNROLL for (int i = 0; i < ROWS; i++)
                {
                    float g = ((const float *)s->g[j + i])[n];
                    UNROLL for (int v = 0; v < Q; v++) r[i][v] += t[v] * g;
                }
            }
            UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < Q; v++)
                adam(&s->u[j + i], L * (at + v), r[i][v], pace);
        }
    for (int k = 0; k < UNITS; k += L) {
        vf r[L];
        UNROLL for (int i = 0; i < L; i++)
        {
            r[i] = s->g[k + i][0];
            UNROLL for (int n = 1; n < V; n++) r[i] += s->g[k + i][n];
        }
        adam(&s->c, k, sums(r), pace);
    }
}

static __attribute__((noinline)) void first(State *s, Pace pace)
{
    enum { VECTORS = L == 16 ? 4 : 2 };
    turned(s->h, s->t);
    for (int at = 0; at < W; at += VECTORS) {
        vf r[IN + 1][VECTORS] = {0};
        for (int n = 0; n < N; n++)
            UNROLL for (int v = 0; v < VECTORS; v++)
            {
                vf g = *(const vf *)(s->t[n] + L * (at + v));
                IN_REGISTER(g);
                UNROLL for (int i = 0; i < IN; i++) r[i][v] += g * ((const float *)s->x[i])[n];
                r[IN][v] += g;
            }
        UNROLL for (int v = 0; v < VECTORS; v++)
        {
            UNROLL for (int i = 0; i < IN; i++) adam(&s->w[i], L * (at + v), r[i][v], pace);
            adam(&s->b, L * (at + v), r[IN][v], pace);
        }
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
