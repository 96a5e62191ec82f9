/* W6: microgpt, one document a step: width 16, 4 heads, 1 to 16 positions, Adam.  float64, strict: every sum in the
 * order of the Python step, exp, log and pow those of the C library.
 *
 * How it was tuned: nothing waits for the next position but attention, so each layer runs over all positions before
 * the next one, 4 positions x 2 to 6 vectors of outputs in registers, which hides the latency of ordered sums.
 * - Matrices are kept both ways round, [output][input] for the way back and for Adam, [input][output] for the way
 *   forward; the second is written by Adam from registers, 8 x 8 numbers at a time, in the shadow of its divisions.
 * - A block's gradient, a sum over positions from the last to the first, is computed where Adam needs it and is never
 *   stored.
 * - The four heads are the four lanes of attention: queries, keys and values are stored [element][head].
 * - Ordered sums over the width (rmsnorm) are done for 8 positions at a time, transposed.
 * Of the time for 8 positions about a third is exp, log and pow of the library, a third Adam, limited by the units
 * for square roots and quotients. */
#include "harness.h"

extern double exp(double), log(double), pow(double, double);

typedef double v8 __attribute__((vector_size(64)));
typedef double v4 __attribute__((vector_size(32)));
typedef long m8 __attribute__((vector_size(64)));
typedef long m4 __attribute__((vector_size(32)));

enum { D = 16, HEADS = 4, BLOCK = 16, MLP = 64, LETTERS = 27, PADDED = 32 };

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")
#define MATRIX(name, rows, columns) double name[3][rows][columns] __attribute__((aligned(64)))
#define ROWS(name, width) double name[BLOCK][width] __attribute__((aligned(64)))

typedef struct {
    /* p, m and v of every matrix */
    MATRIX(letters, PADDED, D);
    MATRIX(places, BLOCK, D);
    MATRIX(out, PADDED, D);
    MATRIX(qkv, 48, D);
    MATRIX(mix, D, D);
    MATRIX(expand, MLP, D);
    MATRIX(contract, D, MLP);
    /* [input][output] */
    double out_t[D][PADDED], qkv_t[D][48], mix_t[D][D], expand_t[D][MLP], contract_t[MLP][D];
    /* activations: x0 embedding, x1 its norm, x2 after attention, x3 after the MLP; n1, n2: inputs of the layers */
    ROWS(x0, D); ROWS(x1, D); ROWS(n1, D); ROWS(x2, D); ROWS(n2, D); ROWS(x3, D);
    ROWS(attended, D); ROWS(grown, MLP); ROWS(scores, PADDED);
    v4 q[BLOCK][4], k[BLOCK][4], v[BLOCK][4];   /* [position][element of a head], lanes: heads */
    v4 power[BLOCK][BLOCK], total[BLOCK], inverse[BLOCK];
    double mean0[BLOCK], mean1[BLOCK], mean2[BLOCK]; /* what rmsnorm takes the root of */
    double scale0[BLOCK], scale1[BLOCK], scale2[BLOCK];
    /* gradients */
    ROWS(g, D); ROWS(g_mixed, D); ROWS(g_layer, D); ROWS(g_grown, MLP); ROWS(g_scores, PADDED); ROWS(g_qkv, 48);
    ROWS(g_top, D);
    double g_letters[PADDED][D], g_places[BLOCK][D];
} State __attribute__((aligned(64)));

/* ---- exchange ---- */

typedef struct {
    double *p;
    int rows, columns;
} Part;

static int parts(State *s, Part *part)
{
    Part all[] = {{s->letters[0][0], LETTERS, D}, {s->places[0][0], BLOCK, D}, {s->out[0][0], LETTERS, D},
                  {s->qkv[0][0], 48, D},          {s->mix[0][0], D, D},        {s->expand[0][0], MLP, D},
                  {s->contract[0][0], D, MLP}};
    memcpy(part, all, sizeof all);
    return 7;
}

static void turn(const double *from, double *to, int rows, int columns)
{
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
}

static void open_state(State *s, const double *p)
{
    Part part[8];
    for (int k = 0, n = parts(s, part); k < n; p += part[k].rows * part[k].columns, k++)
        memcpy(part[k].p, p, part[k].rows * part[k].columns * sizeof *p);
    turn(s->out[0][0], s->out_t[0], PADDED, D);
    turn(s->qkv[0][0], s->qkv_t[0], 48, D);
    turn(s->mix[0][0], s->mix_t[0], D, D);
    turn(s->expand[0][0], s->expand_t[0], MLP, D);
    turn(s->contract[0][0], s->contract_t[0], D, MLP);
}

static void parameters(const State *s, double *p)
{
    Part part[8];
    for (int k = 0, n = parts((State *)s, part); k < n; p += part[k].rows * part[k].columns, k++)
        memcpy(p, part[k].p, part[k].rows * part[k].columns * sizeof *p);
}

/* ---- linear algebra ---- */

INLINE v8 at(const double *p) { return *(const v8 *)p; }
INLINE v8 pick(v8 a, v8 b, m8 lanes) { return __builtin_shuffle(a, b, lanes); }

INLINE void transpose(v8 *r)
{
    v8 a[8], b[8];
    UNROLL for (int k = 0; k < 8; k += 2)
    {
        a[k] = pick(r[k], r[k + 1], (m8){0, 8, 2, 10, 4, 12, 6, 14});
        a[k + 1] = pick(r[k], r[k + 1], (m8){1, 9, 3, 11, 5, 13, 7, 15});
    }
    UNROLL for (int k = 0; k < 8; k += 4) UNROLL for (int i = 0; i < 2; i++)
    {
        b[k + i] = pick(a[k + i], a[k + i + 2], (m8){0, 1, 8, 9, 4, 5, 12, 13});
        b[k + i + 2] = pick(a[k + i], a[k + i + 2], (m8){2, 3, 10, 11, 6, 7, 14, 15});
    }
    UNROLL for (int k = 0; k < 4; k++)
    {
        r[k] = pick(b[k], b[k + 4], (m8){0, 1, 2, 3, 8, 9, 10, 11});
        r[k + 4] = pick(b[k], b[k + 4], (m8){4, 5, 6, 7, 12, 13, 14, 15});
    }
}

/* y[t] = the sum over k of w[k] * x[t][k], k upwards or downwards, for T positions and V vectors. */
INLINE void product(int T, int V, const double *w, int width, int K, int down, const double *x, int xs, double *y, int ys)
{
    v8 a[4][8] = {0};
    for (int step = 0; step < K; step++) {
        int k = down ? K - 1 - step : step;
        v8 row[8];
        UNROLL for (int v = 0; v < V; v++) row[v] = at(w + k * width + 8 * v);
        UNROLL for (int t = 0; t < T; t++) UNROLL for (int v = 0; v < V; v++) a[t][v] += row[v] * x[t * xs + k];
    }
    UNROLL for (int t = 0; t < T; t++) UNROLL for (int v = 0; v < V; v++) *(v8 *)(y + t * ys + 8 * v) = a[t][v];
}

INLINE void products(int n, int V, const double *w, int width, int K, int down, const double *x, int xs, double *y, int ys)
{
    for (; n >= 4; n -= 4, x += 4 * xs, y += 4 * ys)
        product(4, V, w, width, K, down, x, xs, y, ys);
    if (n == 3)
        product(3, V, w, width, K, down, x, xs, y, ys);
    else if (n == 2)
        product(2, V, w, width, K, down, x, xs, y, ys);
    else if (n == 1)
        product(1, V, w, width, K, down, x, xs, y, ys);
}

/* ---- rmsnorm ---- */

/* The ordered sums over the width of a[t] * b[t], for 8 positions. */
INLINE v8 sums(const double (*a)[D], const double (*b)[D], int down)
{
    v8 r[2][8], sum = {0};
    UNROLL for (int v = 0; v < 2; v++)
    {
        UNROLL for (int t = 0; t < 8; t++) r[v][t] = at(a[t] + 8 * v) * at(b[t] + 8 * v);
        transpose(r[v]);
    }
    UNROLL for (int i = 0; i < D; i++)
    {
        int k = down ? D - 1 - i : i;
        sum += r[k / 8][k % 8];
    }
    return sum;
}

static void normalize(int n, const double (*x)[D], double *mean, double *scale, double (*y)[D])
{
    for (int t = 0; t < n; t += 8)
        *(v8 *)(mean + t) = sums(x + t, x + t, 0) * (1.0 / D) + 1e-5;
    for (int t = 0; t < n; t++)
        scale[t] = pow(mean[t], -0.5);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += 8)
            *(v8 *)(y[t] + v) = at(x[t] + v) * scale[t];
}

/* Adds to g, the gradient of x, what comes from gy; `first` when g has nothing yet. */
INLINE void normalize_back(int n, const double (*x)[D], const double *mean, const double *scale, const double (*gy)[D],
                           double (*g)[D], int first)
{
    double d[BLOCK] __attribute__((aligned(64)));
    for (int t = 0; t < n; t += 8)
        *(v8 *)(d + t) = sums(x + t, gy + t, 1);
    for (int t = 0; t < n; t++)
        d[t] = (1.0 / D) * (-0.5 * pow(mean[t], -1.5) * d[t]);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += 8) {
            v8 own = scale[t] * at(gy[t] + v), square = at(x[t] + v) * d[t];
            *(v8 *)(g[t] + v) = (first ? own : at(g[t] + v) + own) + square + square;
        }
}

/* ---- attention ---- */

/* 16 numbers [head][element] as [element][head]; it is its own inverse. */
INLINE void heads(const double *from, v4 *to)
{
    v8 a = at(from), b = at(from + 8);
    *(v8 *)to = pick(a, b, (m8){0, 4, 8, 12, 1, 5, 9, 13});
    *(v8 *)(to + 2) = pick(a, b, (m8){2, 6, 10, 14, 3, 7, 11, 15});
}

static void attend(State *s, int n, const double (*qkv)[48])
{
    for (int t = 0; t < n; t++) {
        heads(qkv[t], s->q[t]);
        heads(qkv[t] + 16, s->k[t]);
        heads(qkv[t] + 32, s->v[t]);
    }
    for (int t = 0; t < n; t++) {
        v4 top = {-__builtin_inf(), -__builtin_inf(), -__builtin_inf(), -__builtin_inf()};
        for (int u = 0; u <= t; u++) {
            v4 sum = {0};
            UNROLL for (int e = 0; e < 4; e++) sum += s->q[t][e] * s->k[u][e];
            s->power[t][u] = sum * 0.5;
            m4 more = s->power[t][u] > top;
            top = (v4)((more & (m4)s->power[t][u]) | (~more & (m4)top));
        }
        for (int u = 0; u <= t; u++)
            s->power[t][u] -= top;
    }
    for (int t = 0; t < n; t++) {
        double *power = (double *)s->power[t];
        for (int k = 0; k < 4 * (t + 1); k++)
            power[k] = exp(power[k]);
    }
    for (int t = 0; t < n; t++) {
        v4 sum = {0};
        for (int u = 0; u <= t; u++)
            sum += s->power[t][u];
        s->total[t] = sum;
        for (int h = 0; h < HEADS; h++)
            s->inverse[t][h] = pow(sum[h], -1.0);
    }
    for (int t = 0; t < n; t++) {
        v4 mixed[4] __attribute__((aligned(64))) = {0};
        for (int u = 0; u <= t; u++) {
            v4 weight = s->power[t][u] * s->inverse[t];
            UNROLL for (int e = 0; e < 4; e++) mixed[e] += weight * s->v[u][e];
        }
        heads((double *)mixed, (v4 *)s->attended[t]);
    }
}

static void attend_back(State *s, int n)
{
    v4 gk[BLOCK][4] __attribute__((aligned(64))), gv[BLOCK][4] __attribute__((aligned(64)));
    double squares[BLOCK][4];
    memset(gk, 0, n * sizeof gk[0]);
    memset(gv, 0, n * sizeof gv[0]);
    for (int t = 0; t < n; t++)
        for (int h = 0; h < HEADS; h++)
            squares[t][h] = -1.0 * pow(s->total[t][h], -2.0);
    for (int t = n - 1; t >= 0; t--) {
        v4 g[4] __attribute__((aligned(64))), gq[4] __attribute__((aligned(64))) = {0}, gw[BLOCK], g_inverse = {0};
        heads(s->g_mixed[t], g);
        for (int u = t; u >= 0; u--) {
            v4 sum = {0}, weight = s->power[t][u] * s->inverse[t];
            UNROLL for (int e = 3; e >= 0; e--)
            {
                sum += s->v[u][e] * g[e];
                gv[u][e] += weight * g[e];
            }
            gw[u] = sum;
            g_inverse += s->power[t][u] * sum;
        }
        v4 g_total = *(v4 *)squares[t] * g_inverse;
        for (int u = t; u >= 0; u--) {
            v4 d = 0.5 * (s->power[t][u] * (s->inverse[t] * gw[u] + g_total));
            UNROLL for (int e = 0; e < 4; e++)
            {
                gq[e] += s->k[u][e] * d;
                gk[u][e] += s->q[t][e] * d;
            }
        }
        heads((double *)gq, (v4 *)s->g_qkv[t]);
    }
    for (int t = 0; t < n; t++) {
        heads((double *)gk[t], (v4 *)(s->g_qkv[t] + 16));
        heads((double *)gv[t], (v4 *)(s->g_qkv[t] + 32));
    }
}

/* ---- the loss ---- */

/* Of all positions; leaves the gradients of the scores. */
static double surprise(State *s, int n, const unsigned char *letters)
{
    double losses[BLOCK], total = 0.0;
    for (int t = 0; t < n; t++) {
        double *z = s->scores[t], *g = s->g_scores[t], top = z[0];
        for (int j = 1; j < LETTERS; j++)
            top = z[j] > top ? z[j] : top;
        for (int v = 0; v < PADDED; v += 8)
            *(v8 *)(z + v) -= top;
        for (int j = 0; j < LETTERS; j++)
            g[j] = exp(z[j]);
        double sum = 0.0, each = 1.0 / n;
        for (int j = 0; j < LETTERS; j++)
            sum += g[j];
        losses[t] = log(sum) - z[letters[t]];
        double factor = each / sum, right = g[letters[t]];
        for (int v = 0; v < PADDED; v += 8)
            *(v8 *)(g + v) *= factor;
        g[letters[t]] = -each + right * factor;
        for (int j = LETTERS; j < PADDED; j++)
            g[j] = 0.0;
    }
    for (int t = 0; t < n; t++)
        total += losses[t];
    return total * (1.0 / n);
}

/* ---- Adam ---- */

typedef struct {
    double rate, correction;
} Pace;

INLINE v8 adam(double *p, double *m, double *v, v8 g, Pace pace)
{
    v8 a = 0.85 * at(m) + (1.0 - 0.85) * g, b = 0.99 * at(v) + (1.0 - 0.99) * (g * g), root = b * pace.correction;
#ifdef __AVX512F__
    root = (v8)__builtin_ia32_sqrtpd512_mask(root, root, -1, 4);
#else
    for (int k = 0; k < 8; k++)
        root[k] = __builtin_sqrt(root[k]);
#endif
    *(v8 *)m = a;
    *(v8 *)v = b;
    return *(v8 *)p = at(p) - pace.rate * a / (root + 1e-8);
}

/* A matrix whose gradient is the sum over positions of g[t][row] * x[t][column], and its other way round. */
INLINE void move(double *w, double *turned, int rows, int columns, int n, const double *x, int xs, const double *g, int gs,
                 Pace pace)
{
    int size = rows * columns;
    for (int r = 0; r < rows; r += 8)
        for (int c = 0; c < columns; c += 8) {
            v8 d[8] = {0};
            for (int t = n - 1; t >= 0; t--) {
                v8 row = at(x + t * xs + c);
                UNROLL for (int i = 0; i < 8; i++) d[i] += row * g[t * gs + r + i];
            }
            UNROLL for (int i = 0; i < 8; i++)
            {
                double *p = w + (r + i) * columns + c;
                d[i] = adam(p, p + size, p + 2 * size, d[i], pace);
            }
            transpose(d);
            UNROLL for (int i = 0; i < 8; i++) *(v8 *)(turned + (c + i) * rows + r) = d[i];
        }
}

INLINE void move_table(double *w, const double *g, int size, Pace pace)
{
    for (int k = 0; k < size; k += 8)
        adam(w + k, w + k + size, w + k + 2 * size, at(g + k), pace);
}

/* ---- the step ---- */

INLINE void add(int n, const double (*a)[D], double (*b)[D])
{
    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += 8)
            *(v8 *)(b[t] + v) = at(a[t] + v) + at(b[t] + v);
}

static double step(State *s, const Row *row)
{
    const unsigned char *tokens = row->inputs;
    int n = row->count - 1;
    Pace pace = {row->rate, row->correction};

    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += 8)
            *(v8 *)(s->x0[t] + v) = at(s->letters[0][tokens[t]] + v) + at(s->places[0][t] + v);
    normalize(n, s->x0, s->mean0, s->scale0, s->x1);
    normalize(n, s->x1, s->mean1, s->scale1, s->n1);
    ROWS(qkv, 48);
    products(n, 6, s->qkv_t[0], 48, D, 0, s->n1[0], D, qkv[0], 48);
    attend(s, n, qkv);
    products(n, 2, s->mix_t[0], D, D, 0, s->attended[0], D, s->x2[0], D);
    add(n, s->x1, s->x2);
    normalize(n, s->x2, s->mean2, s->scale2, s->n2);
    products(n, 4, s->expand_t[0], MLP, D, 0, s->n2[0], D, s->grown[0], MLP);
    products(n, 4, s->expand_t[0] + 32, MLP, D, 0, s->n2[0], D, s->grown[0] + 32, MLP);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < MLP; v += 8) {
            v8 z = at(s->grown[t] + v);
            *(v8 *)(s->grown[t] + v) = (v8)((z > 0.0) & (m8)z);
        }
    products(n, 2, s->contract_t[0], D, MLP, 0, s->grown[0], MLP, s->x3[0], D);
    add(n, s->x2, s->x3);
    products(n, 4, s->out_t[0], PADDED, D, 0, s->x3[0], D, s->scores[0], PADDED);
    double loss = surprise(s, n, tokens + 1);

    products(n, 2, s->out[0][0], D, LETTERS, 1, s->g_scores[0], PADDED, s->g_top[0], D);
    move(s->out[0][0], s->out_t[0], PADDED, D, n, s->x3[0], D, s->g_scores[0], PADDED, pace);
    products(n, 4, s->contract[0][0], MLP, D, 1, s->g_top[0], D, s->g_grown[0], MLP);
    products(n, 4, s->contract[0][0] + 32, MLP, D, 1, s->g_top[0], D, s->g_grown[0] + 32, MLP);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < MLP; v += 8)
            *(v8 *)(s->g_grown[t] + v) = (v8)((at(s->grown[t] + v) > 0.0) & (m8)at(s->g_grown[t] + v));
    move(s->contract[0][0], s->contract_t[0], D, MLP, n, s->grown[0], MLP, s->g_top[0], D, pace);
    products(n, 2, s->expand[0][0], D, MLP, 1, s->g_grown[0], MLP, s->g_layer[0], D);
    move(s->expand[0][0], s->expand_t[0], MLP, D, n, s->n2[0], D, s->g_grown[0], MLP, pace);
    normalize_back(n, s->x2, s->mean2, s->scale2, s->g_layer, s->g_top, 0);
    products(n, 2, s->mix[0][0], D, D, 1, s->g_top[0], D, s->g_mixed[0], D);
    move(s->mix[0][0], s->mix_t[0], D, D, n, s->attended[0], D, s->g_top[0], D, pace);
    attend_back(s, n);
    products(n, 2, s->qkv[0][0], D, 48, 1, s->g_qkv[0], 48, s->g_layer[0], D);
    move(s->qkv[0][0], s->qkv_t[0], 48, D, n, s->n1[0], D, s->g_qkv[0], 48, pace);
    normalize_back(n, s->x1, s->mean1, s->scale1, s->g_layer, s->g_top, 0);
    normalize_back(n, s->x0, s->mean0, s->scale0, s->g_top, s->g, 1);

    memset(s->g_letters, 0, sizeof s->g_letters);
    memset(s->g_places, 0, sizeof s->g_places);
    for (int t = n - 1; t >= 0; t--)
        for (int v = 0; v < D; v += 8) {
            *(v8 *)(s->g_letters[tokens[t]] + v) += at(s->g[t] + v);
            *(v8 *)(s->g_places[t] + v) = at(s->g[t] + v);
        }
    move_table(s->letters[0][0], s->g_letters[0], PADDED * D, pace);
    move_table(s->places[0][0], s->g_places[0], BLOCK * D, pace);
    return loss;
}

REFERENCE()
