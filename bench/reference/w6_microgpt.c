/* W6: microgpt, one document a step: width 16, 4 heads, 1 to 16 positions, Adam.  float64, strict: every sum in the
 * order of the Python step, exp, log and pow those of the C library.
 *
 * How it was tuned: nothing waits for the next position but attention, so each layer runs over all positions before
 * the next one, up to 4 positions x 6 vectors of outputs in registers, which hides the latency of ordered sums.
 * - Matrices are kept both ways round, [output][input] for the way back and for Adam, [input][output] for the way
 *   forward; the second is written by Adam from registers, 8 rows at a time, in the shadow of its divisions.
 * - A block's gradient, a sum over positions from the last to the first, is computed where Adam needs it and is never
 *   stored.
 * - The four heads are the lanes of attention: queries, keys and values are stored [element][head].
 * - Ordered sums over the width (rmsnorm) are done for as many positions at a time as there are lanes, transposed.
 * Of the time for 8 positions about a third is exp, log and pow of the library, a third Adam, limited by the units
 * for square roots and quotients. */
#include "harness.h"
#include "wide.h"

extern double exp(double), log(double), pow(double, double);

/* Vectors of `LH` heads: all four, if the processor's are not narrower. */
#define LH (L < 4 ? L : 4)
typedef double vh __attribute__((vector_size(8 * LH)));
typedef long mh __attribute__((vector_size(8 * LH)));

enum { D = 16, HEADS = 4, BLOCK = 16, MLP = 64, LETTERS = 27, PADDED = 32, PARTS = HEADS / LH };
/* So many positions and vectors of outputs are computed together. */
enum { TOGETHER = L == 8 ? 4 : 2, ACROSS = L == 8 ? 6 : 4 };
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
    /* [part of the heads][position][element of a head], lanes: heads */
    vh q[PARTS][BLOCK][4], k[PARTS][BLOCK][4], v[PARTS][BLOCK][4];
    vh power[PARTS][BLOCK][BLOCK], total[PARTS][BLOCK], inverse[PARTS][BLOCK];
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

INLINE vd at(const double *p) { return *(const vd *)p; }

/* y[t] = the sum over k of w[k] * x[t][k], k upwards or downwards, for T positions and V vectors. */
INLINE void product(int T, int V, const double *w, int width, int K, int down, const double *x, int xs, double *y, int ys)
{
    UNROLL for (int c = 0; c < V; c += ACROSS)
    {
        vd a[TOGETHER][ACROSS] = {0};
        for (int step = 0; step < K; step++) {
            int k = down ? K - 1 - step : step;
            vd row[ACROSS];
            UNROLL for (int v = 0; v < ACROSS; v++) if (c + v < V) row[v] = at(w + k * width + L * (c + v));
            UNROLL for (int t = 0; t < T; t++) UNROLL for (int v = 0; v < ACROSS; v++)
                if (c + v < V) a[t][v] += row[v] * x[t * xs + k];
        }
        UNROLL for (int t = 0; t < T; t++) UNROLL for (int v = 0; v < ACROSS; v++)
            if (c + v < V) *(vd *)(y + t * ys + L * (c + v)) = a[t][v];
    }
}

INLINE void products(int n, int V, const double *w, int width, int K, int down, const double *x, int xs, double *y, int ys)
{
    for (; n >= TOGETHER; n -= TOGETHER, x += TOGETHER * xs, y += TOGETHER * ys)
        product(TOGETHER, V, w, width, K, down, x, xs, y, ys);
    if (n == 3)
        product(3, V, w, width, K, down, x, xs, y, ys);
    else if (n == 2)
        product(2, V, w, width, K, down, x, xs, y, ys);
    else if (n == 1)
        product(1, V, w, width, K, down, x, xs, y, ys);
}

/* ---- rmsnorm ---- */

/* The ordered sums over the width of a[t] * b[t], for L positions. */
INLINE vd sums(const double (*a)[D], const double (*b)[D], int down)
{
    vd sum = {0};
    UNROLL for (int step = 0; step < D / L; step++)
    {
        int v = down ? D / L - 1 - step : step;
        vd r[L];
        UNROLL for (int t = 0; t < L; t++) r[t] = at(a[t] + L * v) * at(b[t] + L * v);
        transpose(r);
        UNROLL for (int i = 0; i < L; i++) sum += r[down ? L - 1 - i : i];
    }
    return sum;
}

static void normalize(int n, const double (*x)[D], double *mean, double *scale, double (*y)[D])
{
    for (int t = 0; t < n; t += L)
        *(vd *)(mean + t) = sums(x + t, x + t, 0) * (1.0 / D) + 1e-5;
    for (int t = 0; t < n; t++)
        scale[t] = pow(mean[t], -0.5);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += L)
            *(vd *)(y[t] + v) = at(x[t] + v) * scale[t];
}

/* Adds to g, the gradient of x, what comes from gy; `first` when g has nothing yet. */
INLINE void normalize_back(int n, const double (*x)[D], const double *mean, const double *scale, const double (*gy)[D],
                           double (*g)[D], int first)
{
    double d[BLOCK] __attribute__((aligned(64)));
    for (int t = 0; t < n; t += L)
        *(vd *)(d + t) = sums(x + t, gy + t, 1);
    for (int t = 0; t < n; t++)
        d[t] = (1.0 / D) * (-0.5 * pow(mean[t], -1.5) * d[t]);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += L) {
            vd own = scale[t] * at(gy[t] + v), square = at(x[t] + v) * d[t];
            *(vd *)(g[t] + v) = (first ? own : at(g[t] + v) + own) + square + square;
        }
}

/* ---- attention ---- */

/* 16 numbers [head][element] as [part of the heads][element], whose lanes are heads. */
INLINE void split(const double *from, vh (*to)[BLOCK][4], int t)
{
#if L == 8
    vd a = at(from), b = at(from + 8);
    *(vd *)to[0][t] = pick(a, b, (md){0, 4, 8, 12, 1, 5, 9, 13});
    *(vd *)(to[0][t] + 2) = pick(a, b, (md){2, 6, 10, 14, 3, 7, 11, 15});
#else
    UNROLL for (int p = 0; p < PARTS; p++) UNROLL for (int e = 0; e < 4; e += L)
    {
        vd r[L];
        UNROLL for (int h = 0; h < L; h++) r[h] = at(from + 4 * (LH * p + h) + e);
        transpose(r);
        UNROLL for (int i = 0; i < L; i++) to[p][t][e + i] = r[i];
    }
#endif
}

/* The way back, for the heads of one part. */
INLINE void join(const vh *from, int p, double *to)
{
#if L == 8
    vd a = *(const vd *)from, b = *(const vd *)(from + 2);
    *(vd *)to = pick(a, b, (md){0, 4, 8, 12, 1, 5, 9, 13});
    *(vd *)(to + 8) = pick(a, b, (md){2, 6, 10, 14, 3, 7, 11, 15});
#else
    UNROLL for (int e = 0; e < 4; e += L)
    {
        vd r[L];
        UNROLL for (int i = 0; i < L; i++) r[i] = from[e + i];
        transpose(r);
        UNROLL for (int h = 0; h < L; h++) *(vd *)(to + 4 * (LH * p + h) + e) = r[h];
    }
#endif
}

static void attend(State *s, int n, const double (*qkv)[48])
{
    for (int t = 0; t < n; t++) {
        split(qkv[t], s->q, t);
        split(qkv[t] + 16, s->k, t);
        split(qkv[t] + 32, s->v, t);
    }
    for (int p = 0; p < PARTS; p++) {
        for (int t = 0; t < n; t++) {
            vh top = -__builtin_inf() - (vh){0};
            for (int u = 0; u <= t; u++) {
                vh sum = {0};
                UNROLL for (int e = 0; e < 4; e++) sum += s->q[p][t][e] * s->k[p][u][e];
                s->power[p][t][u] = sum * 0.5;
                mh more = s->power[p][t][u] > top;
                top = (vh)((more & (mh)s->power[p][t][u]) | (~more & (mh)top));
            }
            for (int u = 0; u <= t; u++)
                s->power[p][t][u] -= top;
        }
        for (int t = 0; t < n; t++) {
            double *power = (double *)s->power[p][t];
            for (int k = 0; k < LH * (t + 1); k++)
                power[k] = exp(power[k]);
        }
        for (int t = 0; t < n; t++) {
            vh sum = {0};
            for (int u = 0; u <= t; u++)
                sum += s->power[p][t][u];
            s->total[p][t] = sum;
            for (int h = 0; h < LH; h++)
                s->inverse[p][t][h] = pow(sum[h], -1.0);
        }
        for (int t = 0; t < n; t++) {
            vh mixed[4] __attribute__((aligned(64))) = {0};
            for (int u = 0; u <= t; u++) {
                vh weight = s->power[p][t][u] * s->inverse[p][t];
                UNROLL for (int e = 0; e < 4; e++) mixed[e] += weight * s->v[p][u][e];
            }
            join(mixed, p, s->attended[t]);
        }
    }
}

static void attend_back(State *s, int n)
{
    vh g[PARTS][BLOCK][4] __attribute__((aligned(64)));
    for (int t = 0; t < n; t++)
        split(s->g_mixed[t], g, t);
    for (int p = 0; p < PARTS; p++) {
        vh gk[BLOCK][4] __attribute__((aligned(64))), gv[BLOCK][4] __attribute__((aligned(64)));
        double squares[BLOCK][LH] __attribute__((aligned(64)));
        memset(gk, 0, n * sizeof gk[0]);
        memset(gv, 0, n * sizeof gv[0]);
        for (int t = 0; t < n; t++)
            for (int h = 0; h < LH; h++)
                squares[t][h] = -1.0 * pow(s->total[p][t][h], -2.0);
        for (int t = n - 1; t >= 0; t--) {
            vh gq[4] __attribute__((aligned(64))) = {0}, gw[BLOCK], g_inverse = {0};
            for (int u = t; u >= 0; u--) {
                vh sum = {0}, weight = s->power[p][t][u] * s->inverse[p][t];
                UNROLL for (int e = 3; e >= 0; e--)
                {
                    sum += s->v[p][u][e] * g[p][t][e];
                    gv[u][e] += weight * g[p][t][e];
                }
                gw[u] = sum;
                g_inverse += s->power[p][t][u] * sum;
            }
            vh g_total = *(vh *)squares[t] * g_inverse;
            for (int u = t; u >= 0; u--) {
                vh d = 0.5 * (s->power[p][t][u] * (s->inverse[p][t] * gw[u] + g_total));
                UNROLL for (int e = 0; e < 4; e++)
                {
                    gq[e] += s->k[p][u][e] * d;
                    gk[u][e] += s->q[p][t][e] * d;
                }
            }
            join(gq, p, s->g_qkv[t]);
        }
        for (int t = 0; t < n; t++) {
            join(gk[t], p, s->g_qkv[t] + 16);
            join(gv[t], p, s->g_qkv[t] + 32);
        }
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
        for (int v = 0; v < PADDED; v += L)
            *(vd *)(z + v) -= top;
        for (int j = 0; j < LETTERS; j++)
            g[j] = exp(z[j]);
        double sum = 0.0, each = 1.0 / n;
        for (int j = 0; j < LETTERS; j++)
            sum += g[j];
        losses[t] = log(sum) - z[letters[t]];
        double factor = each / sum, right = g[letters[t]];
        for (int v = 0; v < PADDED; v += L)
            *(vd *)(g + v) *= factor;
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

INLINE vd adam(double *p, double *m, double *v, vd g, Pace pace)
{
    vd a = 0.85 * at(m) + (1.0 - 0.85) * g, b = 0.99 * at(v) + (1.0 - 0.99) * (g * g), root = b * pace.correction;
#if L == 8
    root = (vd)__builtin_ia32_sqrtpd512_mask(root, root, -1, 4);
#elif L == 4
    root = (vd)__builtin_ia32_sqrtpd256(root);
#elif defined(__SSE2__)
    root = (vd)__builtin_ia32_sqrtpd(root);
#else
    for (int k = 0; k < L; k++)
        root[k] = __builtin_sqrt(root[k]);
#endif
    *(vd *)m = a;
    *(vd *)v = b;
    return *(vd *)p = at(p) - pace.rate * a / (root + 1e-8);
}

/* A matrix whose gradient is the sum over positions of g[t][row] * x[t][column], and its other way round. */
INLINE void move(double *w, double *turned, int rows, int columns, int n, const double *x, int xs, const double *g, int gs,
                 Pace pace)
{
    int size = rows * columns;
    for (int r = 0; r < rows; r += 8)
        for (int c = 0; c < columns; c += L) {
            vd d[8] = {0};
            for (int t = n - 1; t >= 0; t--) {
                vd row = at(x + t * xs + c);
                UNROLL for (int i = 0; i < 8; i++) d[i] += row * g[t * gs + r + i];
            }
            UNROLL for (int i = 0; i < 8; i++)
            {
                double *p = w + (r + i) * columns + c;
                d[i] = adam(p, p + size, p + 2 * size, d[i], pace);
            }
            UNROLL for (int k = 0; k < 8; k += L)
            {
                transpose(d + k);
                UNROLL for (int i = 0; i < L; i++) *(vd *)(turned + (c + i) * rows + r + k) = d[k + i];
            }
        }
}

INLINE void move_table(double *w, const double *g, int size, Pace pace)
{
    for (int k = 0; k < size; k += L)
        adam(w + k, w + k + size, w + k + 2 * size, at(g + k), pace);
}

/* ---- the step ---- */

INLINE void add(int n, const double (*a)[D], double (*b)[D])
{
    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += L)
            *(vd *)(b[t] + v) = at(a[t] + v) + at(b[t] + v);
}

static double step(State *s, const Row *row)
{
    const unsigned char *tokens = row->inputs;
    int n = row->count - 1;
    Pace pace = {row->rate, row->correction};

    for (int t = 0; t < n; t++)
        for (int v = 0; v < D; v += L)
            *(vd *)(s->x0[t] + v) = at(s->letters[0][tokens[t]] + v) + at(s->places[0][t] + v);
    normalize(n, s->x0, s->mean0, s->scale0, s->x1);
    normalize(n, s->x1, s->mean1, s->scale1, s->n1);
    ROWS(qkv, 48);
    products(n, 48 / L, s->qkv_t[0], 48, D, 0, s->n1[0], D, qkv[0], 48);
    attend(s, n, qkv);
    products(n, 16 / L, s->mix_t[0], D, D, 0, s->attended[0], D, s->x2[0], D);
    add(n, s->x1, s->x2);
    normalize(n, s->x2, s->mean2, s->scale2, s->n2);
    products(n, 32 / L, s->expand_t[0], MLP, D, 0, s->n2[0], D, s->grown[0], MLP);
    products(n, 32 / L, s->expand_t[0] + 32, MLP, D, 0, s->n2[0], D, s->grown[0] + 32, MLP);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < MLP; v += L) {
            vd z = at(s->grown[t] + v);
            *(vd *)(s->grown[t] + v) = positive(z);
        }
    products(n, 16 / L, s->contract_t[0], D, MLP, 0, s->grown[0], MLP, s->x3[0], D);
    add(n, s->x2, s->x3);
    products(n, 32 / L, s->out_t[0], PADDED, D, 0, s->x3[0], D, s->scores[0], PADDED);
    double loss = surprise(s, n, tokens + 1);

    products(n, 16 / L, s->out[0][0], D, LETTERS, 1, s->g_scores[0], PADDED, s->g_top[0], D);
    move(s->out[0][0], s->out_t[0], PADDED, D, n, s->x3[0], D, s->g_scores[0], PADDED, pace);
    products(n, 32 / L, s->contract[0][0], MLP, D, 1, s->g_top[0], D, s->g_grown[0], MLP);
    products(n, 32 / L, s->contract[0][0] + 32, MLP, D, 1, s->g_top[0], D, s->g_grown[0] + 32, MLP);
    for (int t = 0; t < n; t++)
        for (int v = 0; v < MLP; v += L)
            *(vd *)(s->g_grown[t] + v) = gated(at(s->grown[t] + v), at(s->g_grown[t] + v));
    move(s->contract[0][0], s->contract_t[0], D, MLP, n, s->grown[0], MLP, s->g_top[0], D, pace);
    products(n, 16 / L, s->expand[0][0], D, MLP, 1, s->g_grown[0], MLP, s->g_layer[0], D);
    move(s->expand[0][0], s->expand_t[0], MLP, D, n, s->n2[0], D, s->g_grown[0], MLP, pace);
    normalize_back(n, s->x2, s->mean2, s->scale2, s->g_layer, s->g_top, 0);
    products(n, 16 / L, s->mix[0][0], D, D, 1, s->g_top[0], D, s->g_mixed[0], D);
    move(s->mix[0][0], s->mix_t[0], D, D, n, s->attended[0], D, s->g_top[0], D, pace);
    attend_back(s, n);
    products(n, 16 / L, s->qkv[0][0], D, 48, 1, s->g_qkv[0], 48, s->g_layer[0], D);
    move(s->qkv[0][0], s->qkv_t[0], 48, D, n, s->n1[0], D, s->g_qkv[0], 48, pace);
    normalize_back(n, s->x1, s->mean1, s->scale1, s->g_layer, s->g_top, 0);
    normalize_back(n, s->x0, s->mean0, s->scale0, s->g_top, s->g, 1);

    memset(s->g_letters, 0, sizeof s->g_letters);
    memset(s->g_places, 0, sizeof s->g_places);
    for (int t = n - 1; t >= 0; t--)
        for (int v = 0; v < D; v += L) {
            *(vd *)(s->g_letters[tokens[t]] + v) += at(s->g[t] + v);
            *(vd *)(s->g_places[t] + v) = at(s->g[t] + v);
        }
    move_table(s->letters[0][0], s->g_letters[0], PADDED * D, pace);
    move_table(s->places[0][0], s->g_places[0], BLOCK * D, pace);
    return loss;
}

REFERENCE()
