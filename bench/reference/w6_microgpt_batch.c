/* W6 with 16 documents of one length a step: width 16, 4 heads, 1 to 16 positions, Adam.  float32, fast.
 *
 * How it was tuned: the 16 documents are the lanes of everything but the gradients of weights, so that attention,
 * softmax and rmsnorm have no shuffles at all, and one copy of the weights serves both directions (4 rows x up to 4 positions
 * in registers, weights broadcast).  The gradients of weights are sums over documents as well: there the lanes are
 * columns, after each layer's inputs were transposed (5 % of the time), and finished vectors
 * go straight into Adam.  exp is a polynomial; roots and quotients in the loops are approximations and a Newton step. */
#include "harness.h"
#include "single.h"

extern double log(double);

/* The documents are the lanes of G groups; TOGETHER positions of an output, and SUMS of a gradient, are in registers. */
enum { D = 16, HEADS = 4, BLOCK = 16, MLP = 64, LETTERS = 27, PADDED = 32, DOCUMENTS = 16, G = DOCUMENTS / L };
enum { TOGETHER = L == 16 ? 4 : 2, SUMS = L == 16 ? 16 : 8 };
#define EACH for (int d = 0; d < G; d++)

#define MATRIX(name, rows, columns) float name[3][rows][columns] __attribute__((aligned(64)))

typedef struct {
    MATRIX(letters, PADDED, D);
    MATRIX(places, BLOCK, D);
    MATRIX(out, PADDED, D);
    MATRIX(qkv, 48, D);
    MATRIX(mix, D, D);
    MATRIX(expand, MLP, D);
    MATRIX(contract, D, MLP);
    /* [group][position][element], lanes: documents */
    vf x0[G][BLOCK][D], x1[G][BLOCK][D], n1[G][BLOCK][D], x2[G][BLOCK][D], n2[G][BLOCK][D], x3[G][BLOCK][D];
    vf attended[G][BLOCK][D], qkvs[G][BLOCK][48], grown[G][BLOCK][MLP], scores[G][BLOCK][PADDED];
    vf weight[G][BLOCK][BLOCK][HEADS];
    vf scale0[G][BLOCK], scale1[G][BLOCK], scale2[G][BLOCK];
    vf g[G][BLOCK][D], g_layer[G][BLOCK][D], g_mixed[G][BLOCK][D], g_qkv[G][BLOCK][48], g_grown[G][BLOCK][MLP];
    vf turned[BLOCK * DOCUMENTS][MLP / L]; /* inputs of a layer, lanes: elements */
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
INLINE void product(int T, const float *w, int outputs, int out, int K, int in, const vf *x, int xs, vf *y, int ys)
{
    for (int j = 0; j < outputs; j += 4) {
        vf a[TOGETHER][4] = {0};
        for (int k = 0; k < K; k++) {
            vf row[4];
            UNROLL for (int i = 0; i < 4; i++)
            {
                row[i] = all(w[(j + i) * out + k * in]);
                IN_REGISTER(row[i]);
            }
            UNROLL for (int t = 0; t < T; t++)
            {
                vf e = x[t * xs + k];
                IN_REGISTER(e);
                UNROLL for (int i = 0; i < 4; i++) a[t][i] += row[i] * e;
            }
        }
        UNROLL for (int t = 0; t < T; t++) UNROLL for (int i = 0; i < 4; i++) y[t * ys + j + i] = a[t][i];
    }
}

INLINE void products(int n, const float *w, int outputs, int out, int K, int in, const vf *x, int xs, vf *y, int ys)
{
    for (; n >= TOGETHER; n -= TOGETHER, x += TOGETHER * xs, y += TOGETHER * ys)
        product(TOGETHER, w, outputs, out, K, in, x, xs, y, ys);
    if (n == 3)
        product(3, w, outputs, out, K, in, x, xs, y, ys);
    else if (n == 2)
        product(2, w, outputs, out, K, in, x, xs, y, ys);
    else if (n == 1)
        product(1, w, outputs, out, K, in, x, xs, y, ys);
}

/* ---- rmsnorm ---- */

static void normalize(int n, const vf (*x)[D], vf *scale, vf (*y)[D])
{
    for (int t = 0; t < n; t++) {
        vf part[4] = {0};
        UNROLL for (int k = 0; k < D; k++) part[k % 4] += x[t][k] * x[t][k];
        vf mean = (part[0] + part[1] + part[2] + part[3]) * (1.0f / D) + 1e-5f;
        scale[t] = 1.0f / root(mean);
        UNROLL for (int k = 0; k < D; k++) y[t][k] = x[t][k] * scale[t];
    }
}

static void normalize_back(int n, const vf (*x)[D], const vf *scale, const vf (*gy)[D], const vf (*add)[D], vf (*g)[D])
{
    for (int t = 0; t < n; t++) {
        vf part[4] = {0};
        UNROLL for (int k = 0; k < D; k++) part[k % 4] += x[t][k] * gy[t][k];
        vf d = (part[0] + part[1] + part[2] + part[3]) * scale[t] * scale[t] * scale[t] * (-1.0f / D);
        UNROLL for (int k = 0; k < D; k++)
        {
            vf own = gy[t][k] * scale[t] + x[t][k] * d;
            g[t][k] = add ? add[t][k] + own : own;
        }
    }
}

/* ---- attention ---- */

static void attend(State *s, int d, int n)
{
    for (int t = 0; t < n; t++) {
        const vf *q = s->qkvs[d][t];
        for (int h = 0; h < HEADS; h++) {
            vf top = all(-1e30f), total = all(0.0f), mixed[4] = {0};
            for (int u = 0; u <= t; u++) {
                const vf *k = s->qkvs[d][u] + 16 + 4 * h;
                vf z = (q[4 * h] * k[0] + q[4 * h + 1] * k[1] + (q[4 * h + 2] * k[2] + q[4 * h + 3] * k[3])) * 0.5f;
                s->weight[d][t][u][h] = z;
                top = larger(top, z);
            }
            for (int u = 0; u <= t; u++) {
                vf p = exponential(s->weight[d][t][u][h] - top);
                s->weight[d][t][u][h] = p;
                total += p;
                UNROLL for (int e = 0; e < 4; e++) mixed[e] += p * s->qkvs[d][u][32 + 4 * h + e];
            }
            vf inverse = reciprocal(total);
            for (int u = 0; u <= t; u++)
                s->weight[d][t][u][h] *= inverse;
            UNROLL for (int e = 0; e < 4; e++) s->attended[d][t][4 * h + e] = mixed[e] * inverse;
        }
    }
}

static void attend_back(State *s, int d, int n)
{
    for (int t = 0; t < n; t++)
        for (int k = 0; k < 48; k++)
            s->g_qkv[d][t][k] = all(0.0f);
    for (int t = 0; t < n; t++)
        for (int h = 0; h < HEADS; h++) {
            vf g[4], q[4], gq[4] = {0}, gw[BLOCK], common = all(0.0f);
            UNROLL for (int e = 0; e < 4; e++) g[e] = s->g_mixed[d][t][4 * h + e], q[e] = s->qkvs[d][t][4 * h + e] * 0.5f;
            for (int u = 0; u <= t; u++) {
                const vf *v = s->qkvs[d][u] + 32 + 4 * h;
                vf *gv = s->g_qkv[d][u] + 32 + 4 * h, w = s->weight[d][t][u][h];
                gw[u] = (v[0] * g[0] + v[1] * g[1] + (v[2] * g[2] + v[3] * g[3])) * w;
                common += gw[u];
                UNROLL for (int e = 0; e < 4; e++) gv[e] += w * g[e];
            }
            for (int u = 0; u <= t; u++) {
                const vf *k = s->qkvs[d][u] + 16 + 4 * h;
                vf *gk = s->g_qkv[d][u] + 16 + 4 * h, score = gw[u] - s->weight[d][t][u][h] * common;
                UNROLL for (int e = 0; e < 4; e++)
                {
                    gq[e] += k[e] * score;
                    gk[e] += q[e] * score;
                }
            }
            UNROLL for (int e = 0; e < 4; e++) s->g_qkv[d][t][4 * h + e] = gq[e] * 0.5f;
        }
}

/* ---- the loss ---- */

/* letters[document * (n + 1) + t] is what position t should have said; leaves the gradients in the scores. */
static double surprise(State *s, int d, int n, const unsigned char *letters)
{
    double loss = 0.0;
    for (int t = 0; t < n; t++) {
        vf *z = s->scores[d][t], top = z[0], total = all(0.0f), chosen = all(0.0f);
        vi letter;
        for (int k = 0; k < L; k++)
            letter[k] = letters[(L * d + k) * (n + 1) + t];
        for (int j = 1; j < LETTERS; j++)
            top = larger(top, z[j]);
        for (int j = 0; j < LETTERS; j++) {
            vf shifted = z[j] - top;
            chosen += choose(letter == j, shifted, all(0.0f));
            z[j] = exponential(shifted);
            total += z[j];
        }
        float each = 1.0f / (n * DOCUMENTS);
        vf factor = each / total;
        for (int j = 0; j < LETTERS; j++)
            z[j] = z[j] * factor - choose(letter == j, all(each), all(0.0f));
        enum { FACTORS = L < 8 ? L : 8 }; /* 27**8 is far below the largest float */
        for (int first = 0; first < L; first += FACTORS) {
            float product = 1.0f, sum = 0.0f;
            for (int k = first; k < first + FACTORS; k++)
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

INLINE void adam(float *p, int size, vf g, Pace pace)
{
    vf m = 0.85f * load(p + size) + 0.15f * g, v = 0.99f * load(p + 2 * size) + 0.01f * (g * g);
    store(p + size, m);
    store(p + 2 * size, v);
    store(p, load(p) - pace.rate * m * reciprocal(root(v) * pace.root + 1e-8f));
}

INLINE void turn(State *s, int d, int n, const vf *x, int columns)
{
    for (int t = 0; t < n; t++)
        UNROLL for (int c = 0; c < columns; c += L)
        {
            vf r[L];
            UNROLL for (int k = 0; k < L; k++) r[k] = x[t * columns + c + k];
            transpose(r);
            UNROLL for (int k = 0; k < L; k++) s->turned[t * DOCUMENTS + L * d + k][c / L] = r[k];
        }
}

/* A matrix whose gradient is the sum over positions and documents of g[row] * x[column]; R x C vectors at a time. */
INLINE void move(State *s, float *w, int rows, int columns, int n, const vf *x, const vf *g, int gs, Pace pace)
{
    int C = columns / L < 4 ? columns / L : 4, R = SUMS / C;
    EACH turn(s, d, n, x + d * BLOCK * columns, columns);
    for (int r = 0; r < rows; r += R)
        for (int at = 0; at < columns / L; at += C) {
            vf a[SUMS] = {0};
            for (int t = 0; t < n; t++)
                for (int k = 0; k < DOCUMENTS; k++) {
                    const float *gr = (const float *)(g + (k / L * BLOCK + t) * gs + r) + k % L;
                    UNROLL for (int c = 0; c < C; c++)
                    {
                        vf e = s->turned[t * DOCUMENTS + k][at + c];
                        IN_REGISTER(e);
                        UNROLL for (int i = 0; i < R; i++) a[i * C + c] += e * gr[L * i];
                    }
                }
            UNROLL for (int i = 0; i < R; i++) UNROLL for (int c = 0; c < C; c++)
                adam(w + (r + i) * columns + L * (at + c), rows * columns, a[i * C + c], pace);
        }
}

/* ---- the step ---- */

static void embed(State *s, int d, int n, const unsigned char *tokens)
{
    for (int t = 0; t < n; t++)
        for (int c = 0; c < D; c += L) {
            vf r[L], place = load(s->places[0][t] + c);
            UNROLL for (int k = 0; k < L; k++) r[k] = load(s->letters[0][tokens[(L * d + k) * (n + 1) + t]] + c) + place;
            transpose(r);
            UNROLL for (int k = 0; k < L; k++) s->x0[d][t][c + k] = r[k];
        }
}

static void embed_back(State *s, int n, const unsigned char *tokens, Pace pace)
{
    memset(s->g_letters, 0, sizeof s->g_letters);
    memset(s->g_places, 0, sizeof s->g_places);
    EACH for (int t = 0; t < n; t++) for (int c = 0; c < D; c += L) {
        vf r[L], sum = load(s->g_places[t] + c);
        UNROLL for (int k = 0; k < L; k++) r[k] = s->g[d][t][c + k];
        transpose(r);
        UNROLL for (int k = 0; k < L; k++)
        {
            float *row = s->g_letters[tokens[(L * d + k) * (n + 1) + t]] + c;
            store(row, load(row) + r[k]);
            sum += r[k];
        }
        store(s->g_places[t] + c, sum);
    }
    for (int k = 0; k < LETTERS * D; k += L)
        adam(s->letters[0][0] + k, PADDED * D, load(s->g_letters[0] + k), pace);
    for (int k = 0; k < BLOCK * D; k += L)
        adam(s->places[0][0] + k, BLOCK * D, load(s->g_places[0] + k), pace);
}

INLINE void add(int n, const vf (*a)[D], vf (*b)[D])
{
    for (int t = 0; t < n; t++)
        UNROLL for (int k = 0; k < D; k++) b[t][k] += a[t][k];
}

static double step(State *s, const Row *row)
{
    const unsigned char *tokens = row->inputs;
    int n = row->count / DOCUMENTS - 1;
    Pace pace = {row->rate, __builtin_sqrt(row->correction)};
    double loss = 0.0;

    EACH
    {
        embed(s, d, n, tokens);
        normalize(n, s->x0[d], s->scale0[d], s->x1[d]);
        normalize(n, s->x1[d], s->scale1[d], s->n1[d]);
        products(n, s->qkv[0][0], 48, D, D, 1, s->n1[d][0], D, s->qkvs[d][0], 48);
        attend(s, d, n);
        products(n, s->mix[0][0], D, D, D, 1, s->attended[d][0], D, s->x2[d][0], D);
        add(n, s->x1[d], s->x2[d]);
        normalize(n, s->x2[d], s->scale2[d], s->n2[d]);
        products(n, s->expand[0][0], MLP, D, D, 1, s->n2[d][0], D, s->grown[d][0], MLP);
        for (int t = 0; t < n; t++)
            UNROLL for (int k = 0; k < MLP; k++) s->grown[d][t][k] = positive(s->grown[d][t][k]);
        products(n, s->contract[0][0], D, MLP, MLP, 1, s->grown[d][0], MLP, s->x3[d][0], D);
        add(n, s->x2[d], s->x3[d]);
        products(n, s->out[0][0], 28, D, D, 1, s->x3[d][0], D, s->scores[d][0], PADDED);
        loss += surprise(s, d, n, tokens + 1);

        products(n, s->out[0][0], D, 1, LETTERS, D, s->scores[d][0], PADDED, s->g[d][0], D);
        for (int t = 0; t < n; t++)
            for (int j = LETTERS; j < PADDED; j++)
                s->scores[d][t][j] = all(0.0f);
        products(n, s->contract[0][0], MLP, 1, D, MLP, s->g[d][0], D, s->g_grown[d][0], MLP);
        for (int t = 0; t < n; t++)
            UNROLL for (int k = 0; k < MLP; k++)
                s->g_grown[d][t][k] = choose(s->grown[d][t][k] > 0.0f, s->g_grown[d][t][k], all(0.0f));
    }
    move(s, s->out[0][0], PADDED, D, n, s->x3[0][0], s->scores[0][0], PADDED, pace);
    move(s, s->contract[0][0], D, MLP, n, s->grown[0][0], s->g[0][0], D, pace);
    EACH products(n, s->expand[0][0], D, 1, MLP, D, s->g_grown[d][0], MLP, s->g_layer[d][0], D);
    move(s, s->expand[0][0], MLP, D, n, s->n2[0][0], s->g_grown[0][0], MLP, pace);
    EACH
    {
        normalize_back(n, s->x2[d], s->scale2[d], s->g_layer[d], s->g[d], s->g[d]);
        products(n, s->mix[0][0], D, 1, D, D, s->g[d][0], D, s->g_mixed[d][0], D);
        attend_back(s, d, n);
    }
    move(s, s->mix[0][0], D, D, n, s->attended[0][0], s->g[0][0], D, pace);
    EACH products(n, s->qkv[0][0], D, 1, 48, D, s->g_qkv[d][0], 48, s->g_layer[d][0], D);
    move(s, s->qkv[0][0], 48, D, n, s->n1[0][0], s->g_qkv[0][0], 48, pace);
    EACH
    {
        normalize_back(n, s->x1[d], s->scale1[d], s->g_layer[d], s->g[d], s->g[d]);
        normalize_back(n, s->x0[d], s->scale0[d], s->g[d], 0, s->g[d]);
    }
    embed_back(s, n, tokens, pace);
    return loss;
}

REFERENCE()
