/* W6 with 16 documents of one length a step: width 16, 4 heads, 1 to 16 positions, Adam.  float32, fast.
 *
 * How it was tuned: the 16 documents are the 16 lanes of everything but the gradients of weights, so that attention,
 * softmax and rmsnorm have no shuffles at all, and one copy of the weights serves both directions (4 rows x 4 positions
 * in registers, weights broadcast).  The gradients of weights are sums over documents as well: there the lanes are
 * columns, after each layer's inputs were transposed, 16 x 16 at a time (5 % of the time), and 16 finished vectors
 * go straight into Adam.  exp is a polynomial; roots and quotients in the loops are approximations and a Newton step. */
#include "harness.h"
#include "single.h"

extern double log(double);

enum { D = 16, HEADS = 4, BLOCK = 16, MLP = 64, LETTERS = 27, PADDED = 32, DOCUMENTS = 16 };

#define MATRIX(name, rows, columns) float name[3][rows][columns] __attribute__((aligned(64)))

typedef struct {
    MATRIX(letters, PADDED, D);
    MATRIX(places, BLOCK, D);
    MATRIX(out, PADDED, D);
    MATRIX(qkv, 48, D);
    MATRIX(mix, D, D);
    MATRIX(expand, MLP, D);
    MATRIX(contract, D, MLP);
    /* [position][element], lanes: documents */
    v16 x0[BLOCK][D], x1[BLOCK][D], n1[BLOCK][D], x2[BLOCK][D], n2[BLOCK][D], x3[BLOCK][D], attended[BLOCK][D];
    v16 qkvs[BLOCK][48], grown[BLOCK][MLP], scores[BLOCK][PADDED];
    v16 weight[BLOCK][BLOCK][HEADS];
    v16 scale0[BLOCK], scale1[BLOCK], scale2[BLOCK];
    v16 g[BLOCK][D], g_layer[BLOCK][D], g_mixed[BLOCK][D], g_qkv[BLOCK][48], g_grown[BLOCK][MLP];
    v16 turned[BLOCK * DOCUMENTS][MLP / 16]; /* inputs of a layer, lanes: elements */
    float g_letters[PADDED][D], g_places[BLOCK][D];
} State __attribute__((aligned(64)));

/* ---- exchange ---- */

typedef struct {
    float *p;
    int rows, columns;
} Part;

static void parts(State *s, Part *part)
{
    Part all[] = {{s->letters[0][0], LETTERS, D}, {s->places[0][0], BLOCK, D}, {s->out[0][0], LETTERS, D},
                  {s->qkv[0][0], 48, D},          {s->mix[0][0], D, D},        {s->expand[0][0], MLP, D},
                  {s->contract[0][0], D, MLP}};
    memcpy(part, all, sizeof all);
}

static void open_state(State *s, const double *p)
{
    Part part[7];
    parts(s, part);
    for (int k = 0; k < 7; k++)
        for (int i = 0; i < part[k].rows * part[k].columns; i++)
            part[k].p[i] = *p++;
}

static void parameters(const State *s, double *p)
{
    Part part[7];
    parts((State *)s, part);
    for (int k = 0; k < 7; k++)
        for (int i = 0; i < part[k].rows * part[k].columns; i++)
            *p++ = part[k].p[i];
}

/* ---- linear algebra ---- */

/* y[t][j] = the sum over k of w[j * out + k * in] * x[t][k], for T positions and 4 outputs at a time. */
INLINE void product(int T, const float *w, int outputs, int out, int K, int in, const v16 *x, int xs, v16 *y, int ys)
{
    for (int j = 0; j < outputs; j += 4) {
        v16 a[4][4] = {0};
        for (int k = 0; k < K; k++) {
            v16 row[4];
            UNROLL for (int i = 0; i < 4; i++)
            {
                row[i] = all(w[(j + i) * out + k * in]);
                IN_REGISTER(row[i]);
            }
            UNROLL for (int t = 0; t < T; t++)
            {
                v16 e = x[t * xs + k];
                IN_REGISTER(e);
                UNROLL for (int i = 0; i < 4; i++) a[t][i] += row[i] * e;
            }
        }
        UNROLL for (int t = 0; t < T; t++) UNROLL for (int i = 0; i < 4; i++) y[t * ys + j + i] = a[t][i];
    }
}

INLINE void products(int n, const float *w, int outputs, int out, int K, int in, const v16 *x, int xs, v16 *y, int ys)
{
    for (; n >= 4; n -= 4, x += 4 * xs, y += 4 * ys)
        product(4, w, outputs, out, K, in, x, xs, y, ys);
    if (n == 3)
        product(3, w, outputs, out, K, in, x, xs, y, ys);
    else if (n == 2)
        product(2, w, outputs, out, K, in, x, xs, y, ys);
    else if (n == 1)
        product(1, w, outputs, out, K, in, x, xs, y, ys);
}

/* ---- rmsnorm ---- */

static void normalize(int n, const v16 (*x)[D], v16 *scale, v16 (*y)[D])
{
    for (int t = 0; t < n; t++) {
        v16 part[4] = {0};
        UNROLL for (int k = 0; k < D; k++) part[k % 4] += x[t][k] * x[t][k];
        v16 mean = (part[0] + part[1] + part[2] + part[3]) * (1.0f / D) + 1e-5f;
        scale[t] = 1.0f / root(mean);
        UNROLL for (int k = 0; k < D; k++) y[t][k] = x[t][k] * scale[t];
    }
}

static void normalize_back(int n, const v16 (*x)[D], const v16 *scale, const v16 (*gy)[D], const v16 (*add)[D], v16 (*g)[D])
{
    for (int t = 0; t < n; t++) {
        v16 part[4] = {0};
        UNROLL for (int k = 0; k < D; k++) part[k % 4] += x[t][k] * gy[t][k];
        v16 d = (part[0] + part[1] + part[2] + part[3]) * scale[t] * scale[t] * scale[t] * (-1.0f / D);
        UNROLL for (int k = 0; k < D; k++)
        {
            v16 own = gy[t][k] * scale[t] + x[t][k] * d;
            g[t][k] = add ? add[t][k] + own : own;
        }
    }
}

/* ---- attention ---- */

static void attend(State *s, int n)
{
    for (int t = 0; t < n; t++) {
        const v16 *q = s->qkvs[t];
        for (int h = 0; h < HEADS; h++) {
            v16 top = all(-1e30f), total = all(0.0f), mixed[4] = {0};
            for (int u = 0; u <= t; u++) {
                const v16 *k = s->qkvs[u] + 16 + 4 * h;
                v16 z = (q[4 * h] * k[0] + q[4 * h + 1] * k[1] + (q[4 * h + 2] * k[2] + q[4 * h + 3] * k[3])) * 0.5f;
                s->weight[t][u][h] = z;
                top = larger(top, z);
            }
            for (int u = 0; u <= t; u++) {
                v16 p = exponential(s->weight[t][u][h] - top);
                s->weight[t][u][h] = p;
                total += p;
                UNROLL for (int e = 0; e < 4; e++) mixed[e] += p * s->qkvs[u][32 + 4 * h + e];
            }
            v16 inverse = reciprocal(total);
            for (int u = 0; u <= t; u++)
                s->weight[t][u][h] *= inverse;
            UNROLL for (int e = 0; e < 4; e++) s->attended[t][4 * h + e] = mixed[e] * inverse;
        }
    }
}

static void attend_back(State *s, int n)
{
    for (int t = 0; t < n; t++)
        for (int k = 0; k < 48; k++)
            s->g_qkv[t][k] = all(0.0f);
    for (int t = 0; t < n; t++)
        for (int h = 0; h < HEADS; h++) {
            v16 g[4], q[4], gq[4] = {0}, gw[BLOCK], common = all(0.0f);
            UNROLL for (int e = 0; e < 4; e++) g[e] = s->g_mixed[t][4 * h + e], q[e] = s->qkvs[t][4 * h + e] * 0.5f;
            for (int u = 0; u <= t; u++) {
                const v16 *v = s->qkvs[u] + 32 + 4 * h;
                v16 *gv = s->g_qkv[u] + 32 + 4 * h, w = s->weight[t][u][h];
                gw[u] = (v[0] * g[0] + v[1] * g[1] + (v[2] * g[2] + v[3] * g[3])) * w;
                common += gw[u];
                UNROLL for (int e = 0; e < 4; e++) gv[e] += w * g[e];
            }
            for (int u = 0; u <= t; u++) {
                const v16 *k = s->qkvs[u] + 16 + 4 * h;
                v16 *gk = s->g_qkv[u] + 16 + 4 * h, d = gw[u] - s->weight[t][u][h] * common;
                UNROLL for (int e = 0; e < 4; e++)
                {
                    gq[e] += k[e] * d;
                    gk[e] += q[e] * d;
                }
            }
            UNROLL for (int e = 0; e < 4; e++) s->g_qkv[t][4 * h + e] = gq[e] * 0.5f;
        }
}

/* ---- the loss ---- */

/* letters[document * (n + 1) + t] is what position t should have said; leaves the gradients in the scores. */
static double surprise(State *s, int n, const unsigned char *letters)
{
    double loss = 0.0;
    for (int t = 0; t < n; t++) {
        v16 *z = s->scores[t], top = z[0], total = all(0.0f), chosen = all(0.0f);
        i16 letter;
        for (int d = 0; d < DOCUMENTS; d++)
            letter[d] = letters[d * (n + 1) + t];
        for (int j = 1; j < LETTERS; j++)
            top = larger(top, z[j]);
        for (int j = 0; j < LETTERS; j++) {
            v16 shifted = z[j] - top;
            chosen += choose(letter == j, shifted, all(0.0f));
            z[j] = exponential(shifted);
            total += z[j];
        }
        float each = 1.0f / (n * DOCUMENTS);
        v16 factor = each / total;
        for (int j = 0; j < LETTERS; j++)
            z[j] = z[j] * factor - choose(letter == j, all(each), all(0.0f));
        for (int d = 0; d < DOCUMENTS; d += 8) { /* 27**8 is far below the largest float */
            float product = 1.0f, sum = 0.0f;
            for (int k = d; k < d + 8; k++)
                product *= total[k], sum += chosen[k];
            loss += log(product) - sum;
        }
    }
    return loss / (n * DOCUMENTS);
}

/* ---- Adam ---- */

typedef struct {
    float rate, root;
} Pace;

INLINE void adam(float *p, int size, v16 g, Pace pace)
{
    v16 m = 0.85f * load(p + size) + 0.15f * g, v = 0.99f * load(p + 2 * size) + 0.01f * (g * g);
    store(p + size, m);
    store(p + 2 * size, v);
    store(p, load(p) - pace.rate * m * reciprocal(root(v) * pace.root + 1e-8f));
}

INLINE void turn(State *s, int n, const v16 *x, int columns)
{
    for (int t = 0; t < n; t++)
        UNROLL for (int c = 0; c < columns; c += 16)
        {
            v16 r[16];
            UNROLL for (int k = 0; k < 16; k++) r[k] = x[t * columns + c + k];
            transpose16(r);
            UNROLL for (int d = 0; d < DOCUMENTS; d++) s->turned[t * DOCUMENTS + d][c / 16] = r[d];
        }
}

/* A matrix whose gradient is the sum over positions and documents of g[row] * x[column]; R x C vectors at a time. */
INLINE void move(State *s, float *w, int rows, int columns, int n, const v16 *x, const v16 *g, int gs, Pace pace)
{
    enum { TOGETHER = 16 };
    int C = columns / 16, R = TOGETHER / C;
    turn(s, n, x, columns);
    for (int r = 0; r < rows; r += R) {
        v16 a[TOGETHER] = {0};
        for (int t = 0; t < n; t++)
            for (int d = 0; d < DOCUMENTS; d++) {
                const float *gr = (const float *)(g + t * gs + r) + d;
                UNROLL for (int c = 0; c < C; c++)
                {
                    v16 e = s->turned[t * DOCUMENTS + d][c];
                    IN_REGISTER(e);
                    UNROLL for (int i = 0; i < R; i++) a[i * C + c] += e * gr[16 * i];
                }
            }
        UNROLL for (int i = 0; i < TOGETHER; i++) adam(w + r * columns + 16 * i, rows * columns, a[i], pace);
    }
}

/* ---- the step ---- */

static void embed(State *s, int n, const unsigned char *tokens)
{
    for (int t = 0; t < n; t++) {
        v16 r[16], place = load(s->places[0][t]);
        UNROLL for (int d = 0; d < DOCUMENTS; d++) r[d] = load(s->letters[0][tokens[d * (n + 1) + t]]) + place;
        transpose16(r);
        UNROLL for (int k = 0; k < D; k++) s->x0[t][k] = r[k];
    }
}

static void embed_back(State *s, int n, const unsigned char *tokens, Pace pace)
{
    memset(s->g_letters, 0, sizeof s->g_letters);
    memset(s->g_places, 0, sizeof s->g_places);
    for (int t = 0; t < n; t++) {
        v16 r[16], sum = all(0.0f);
        UNROLL for (int k = 0; k < D; k++) r[k] = s->g[t][k];
        transpose16(r);
        UNROLL for (int d = 0; d < DOCUMENTS; d++)
        {
            float *row = s->g_letters[tokens[d * (n + 1) + t]];
            store(row, load(row) + r[d]);
            sum += r[d];
        }
        store(s->g_places[t], sum);
    }
    for (int k = 0; k < LETTERS; k++)
        adam(s->letters[0][k], PADDED * D, load(s->g_letters[k]), pace);
    for (int k = 0; k < BLOCK; k++)
        adam(s->places[0][k], BLOCK * D, load(s->g_places[k]), pace);
}

INLINE void add(int n, const v16 (*a)[D], v16 (*b)[D])
{
    for (int t = 0; t < n; t++)
        UNROLL for (int k = 0; k < D; k++) b[t][k] += a[t][k];
}

static double step(State *s, const Row *row)
{
    const unsigned char *tokens = row->inputs;
    int n = row->count / DOCUMENTS - 1;
    Pace pace = {row->rate, __builtin_sqrt(row->correction)};

    embed(s, n, tokens);
    normalize(n, s->x0, s->scale0, s->x1);
    normalize(n, s->x1, s->scale1, s->n1);
    products(n, s->qkv[0][0], 48, D, D, 1, s->n1[0], D, s->qkvs[0], 48);
    attend(s, n);
    products(n, s->mix[0][0], D, D, D, 1, s->attended[0], D, s->x2[0], D);
    add(n, s->x1, s->x2);
    normalize(n, s->x2, s->scale2, s->n2);
    products(n, s->expand[0][0], MLP, D, D, 1, s->n2[0], D, s->grown[0], MLP);
    for (int t = 0; t < n; t++)
        UNROLL for (int k = 0; k < MLP; k++) s->grown[t][k] = positive(s->grown[t][k]);
    products(n, s->contract[0][0], D, MLP, MLP, 1, s->grown[0], MLP, s->x3[0], D);
    add(n, s->x2, s->x3);
    products(n, s->out[0][0], 28, D, D, 1, s->x3[0], D, s->scores[0], PADDED);
    double loss = surprise(s, n, tokens + 1);

    products(n, s->out[0][0], D, 1, LETTERS, D, s->scores[0], PADDED, s->g[0], D);
    for (int t = 0; t < n; t++)
        for (int j = LETTERS; j < PADDED; j++)
            s->scores[t][j] = all(0.0f);
    move(s, s->out[0][0], PADDED, D, n, s->x3[0], s->scores[0], PADDED, pace);
    products(n, s->contract[0][0], MLP, 1, D, MLP, s->g[0], D, s->g_grown[0], MLP);
    for (int t = 0; t < n; t++)
        UNROLL for (int k = 0; k < MLP; k++)
            s->g_grown[t][k] = choose(s->grown[t][k] > 0.0f, s->g_grown[t][k], all(0.0f));
    move(s, s->contract[0][0], D, MLP, n, s->grown[0], s->g[0], D, pace);
    products(n, s->expand[0][0], D, 1, MLP, D, s->g_grown[0], MLP, s->g_layer[0], D);
    move(s, s->expand[0][0], MLP, D, n, s->n2[0], s->g_grown[0], MLP, pace);
    normalize_back(n, s->x2, s->scale2, s->g_layer, s->g, s->g);
    products(n, s->mix[0][0], D, 1, D, D, s->g[0], D, s->g_mixed[0], D);
    move(s, s->mix[0][0], D, D, n, s->attended[0], s->g[0], D, pace);
    attend_back(s, n);
    products(n, s->qkv[0][0], D, 1, 48, D, s->g_qkv[0], 48, s->g_layer[0], D);
    move(s, s->qkv[0][0], 48, D, n, s->n1[0], s->g_qkv[0], 48, pace);
    normalize_back(n, s->x1, s->scale1, s->g_layer, s->g, s->g);
    normalize_back(n, s->x0, s->scale0, s->g, 0, s->g);
    embed_back(s, n, tokens, pace);
    return loss;
}

REFERENCE()
