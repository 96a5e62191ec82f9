/* W4: 784-50-10, 128 images of bytes a step, softmax cross-entropy.  float32, fast.
 *
 * How it was tuned: 10.2 million multiply-adds, nearly all in two products of matrices, and 32 a cycle is the most this
 * machine does.  50 units would fill 64 lanes, so the lanes are pixels both times, 784 = 49 x 16:
 * - forward, 4 images x 4 units are 16 sums over 49 vectors (less where there are fewer registers); the lanes of
 *   the 16 are then added in a tree of shuffles;
 *   (gcc loads an operand of several products again for each, which makes loads the limit: IN_REGISTER, 20 %);
 * - backward, 5 units x 4 vectors of pixels are 20 sums over the 128 images, subtracted from the weights in place, so
 *   that no gradient is ever stored.
 * Pixels become floats once.  The upper layer and the softmax have images as lanes and cost 3 %. */
#include "harness.h"
#include "single.h"

extern double log(double);

/* V vectors of padded units, N of images; how many sums are in registers depends on how many there are. */
enum { IMAGES = 128, PIXELS = 784, UNITS = 50, SCORES = 10, V = 64 / L, N = IMAGES / L };
enum { ROWS = L == 16 ? 4 : 2, LAST_ROWS = 2 * ROWS, ACROSS = L == 16 ? V : 4, UP = L == 16 ? 5 : 2 };
enum { MOVED = L == 16 ? 4 : 2 };

typedef struct {
    float w[UNITS][PIXELS] __attribute__((aligned(64)));
    float u[SCORES][64] __attribute__((aligned(64)));
    float b[64] __attribute__((aligned(64))), c[16];
    float x[IMAGES][PIXELS] __attribute__((aligned(64)));
    float h[IMAGES][64] __attribute__((aligned(64))), g[IMAGES][64] __attribute__((aligned(64)));
    vf z[SCORES][N];
} State;

static void open_state(State *s, const double *p)
{
    for (int j = 0; j < UNITS; j++) {
        for (int i = 0; i < PIXELS; i++)
            s->w[j][i] = *p++;
        s->b[j] = *p++;
    }
    for (int j = 0; j < SCORES; j++) {
        for (int k = 0; k < UNITS; k++)
            s->u[j][k] = *p++;
        s->c[j] = *p++;
    }
}

static void parameters(const State *s, double *p)
{
    for (int j = 0; j < UNITS; j++) {
        for (int i = 0; i < PIXELS; i++)
            *p++ = s->w[j][i];
        *p++ = s->b[j];
    }
    for (int j = 0; j < SCORES; j++) {
        for (int k = 0; k < UNITS; k++)
            *p++ = s->u[j][k];
        *p++ = s->c[j];
    }
}

static void scale(State *s, const unsigned char *pixels)
{
    float *x = s->x[0];
    for (int i = 0; i < IMAGES * PIXELS; i += L) {
        *(vf *)(x + i) = floats(pixels + i) * (1.0f / 255.0f);
    }
}

/* rows x columns sums of products of images and units, in the lanes of one vector. */
#define PRODUCTS(R, C)                                                                                  \
    {                                                                                                   \
        vf a[R * C] = {0};                                                                              \
        for (int i = 0; i < PIXELS; i += L) {                                                           \
            vf w[C];                                                                                    \
            UNROLL for (int j = 0; j < C; j++)                                                          \
            {                                                                                           \
                w[j] = *(const vf *)(s->w[unit + j] + i);                                               \
                IN_REGISTER(w[j]);                                                                      \
            }                                                                                           \
            UNROLL for (int n = 0; n < R; n++)                                                          \
            {                                                                                           \
                vf x = *(const vf *)(s->x[image + n] + i);                                              \
                IN_REGISTER(x);                                                                         \
                UNROLL for (int j = 0; j < C; j++) a[C * n + j] += x * w[j];                            \
            }                                                                                           \
        }                                                                                               \
        float z[R * C] __attribute__((aligned(64)));                                                    \
        UNROLL for (int k = 0; k < R * C; k += L) *(vf *)(z + k) = sums(a + k);                         \
        for (int n = 0; n < R; n++)                                                                     \
            for (int j = 0; j < C; j++)                                                                 \
                s->h[image + n][unit + j] = z[C * n + j];                                               \
    }

static void hidden(State *s)
{
    for (int block = 0; block < IMAGES; block += 8)
        for (int unit = 0; unit < 48; unit += 4)
            for (int image = block; image < block + 8; image += ROWS)
                PRODUCTS(ROWS, 4)
    for (int unit = 48, image = 0; image < IMAGES; image += LAST_ROWS)
        PRODUCTS(LAST_ROWS, 2)
    for (int n = 0; n < IMAGES; n++)
        for (int k = 0; k < 64; k += L)
            store(s->h[n] + k, positive(load(s->h[n] + k) + load(s->b + k)));
}

/* Scores, loss and the gradients of the scores, which take their place. */
static double softmax(State *s, const unsigned char *labels)
{
    vf product = all(1.0f), chosen = all(0.0f);
    for (int n = 0; n < N; n++) {
        vf top = all(-1e30f), total = all(0.0f), z[SCORES];
        for (int j = 0; j < SCORES; j++) {
            vf r[L];
            UNROLL for (int i = 0; i < L; i++)
            {
                const float *h = s->h[L * n + i], *u = s->u[j];
                r[i] = load(h) * load(u);
                UNROLL for (int v = 1; v < V; v++) r[i] += load(h + L * v) * load(u + L * v);
            }
            z[j] = sums(r) + s->c[j];
            top = larger(top, z[j]);
        }
        vf label = floats(labels + L * n);
        for (int j = 0; j < SCORES; j++) {
            chosen += choose(label == (float)j, z[j] - top, all(0.0f));
            z[j] = exponential(z[j] - top);
            total += z[j];
        }
        product *= total;
        vf inverse = (1.0f / IMAGES) / total;
        for (int j = 0; j < SCORES; j++)
            s->z[j][n] = z[j] * inverse - choose(label == (float)j, all(1.0f / IMAGES), all(0.0f));
    }
    double loss = 0.0;
    for (int k = 0; k < L; k++)
        loss += log(product[k]) - chosen[k];
    return loss / IMAGES;
}

/* Gradients of the hidden units, then the upper layer moves. */
static void upper(State *s, float rate)
{
    for (int n = 0; n < IMAGES; n += ROWS)
        for (int at = 0; at < V; at += ACROSS) {
            vf g[ROWS][ACROSS] = {0};
            for (int j = 0; j < SCORES; j++)
                UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < ACROSS; v++)
                    g[i][v] += load(s->u[j] + L * (at + v)) * ((float *)s->z[j])[n + i];
            UNROLL for (int i = 0; i < ROWS; i++) UNROLL for (int v = 0; v < ACROSS; v++)
            {
                int k = L * (at + v);
                store(s->g[n + i] + k, choose(load(s->h[n + i] + k) > 0.0f, g[i][v], all(0.0f)));
            }
        }
    for (int j = 0; j < SCORES; j += UP)
        for (int at = 0; at < V; at += ACROSS) {
            vf d[UP][ACROSS] = {0};
            for (int n = 0; n < IMAGES; n++)
                UNROLL for (int i = 0; i < UP; i++) UNROLL for (int v = 0; v < ACROSS; v++)
                    d[i][v] += load(s->h[n] + L * (at + v)) * ((float *)s->z[j + i])[n];
            UNROLL for (int i = 0; i < UP; i++) UNROLL for (int v = 0; v < ACROSS; v++)
            {
                float *u = s->u[j + i] + L * (at + v);
                store(u, load(u) - rate * d[i][v]);
            }
        }
    for (int j = 0; j < SCORES; j++) {
        float sum = 0.0f;
        for (int n = 0; n < IMAGES; n++)
            sum += ((float *)s->z[j])[n];
        s->c[j] -= rate * sum;
    }
    for (int at = 0; at < V; at += ACROSS) {
        vf b[ACROSS] = {0};
        for (int n = 0; n < IMAGES; n++)
            UNROLL for (int v = 0; v < ACROSS; v++) b[v] += load(s->g[n] + L * (at + v));
        UNROLL for (int v = 0; v < ACROSS; v++) store(s->b + L * (at + v), load(s->b + L * (at + v)) - rate * b[v]);
    }
}

#define MOVE(R, VECTORS)                                                                                \
    {                                                                                                   \
        vf d[R][VECTORS] = {0};                                                                         \
        for (int n = 0; n < IMAGES; n++) {                                                              \
            vf x[VECTORS];                                                                              \
            UNROLL for (int v = 0; v < VECTORS; v++) x[v] = *(const vf *)(s->x[n] + pixel + L * v);     \
            UNROLL for (int j = 0; j < R; j++) UNROLL for (int v = 0; v < VECTORS; v++)                 \
                d[j][v] += x[v] * s->g[n][unit + j];                                                    \
        }                                                                                               \
        UNROLL for (int j = 0; j < R; j++) UNROLL for (int v = 0; v < VECTORS; v++)                     \
            *(vf *)(s->w[unit + j] + pixel + L * v) -= rate * d[j][v];                                  \
    }

static void lower(State *s, float rate)
{
    enum { WHOLE = PIXELS / (MOVED * L) * MOVED * L };
    for (int pixel = 0; pixel < WHOLE; pixel += MOVED * L)
        for (int unit = 0; unit < UNITS; unit += 5)
            MOVE(5, MOVED)
    for (int pixel = WHOLE; pixel < PIXELS; pixel += L)
        for (int unit = 0; unit < UNITS; unit += 10)
            MOVE(10, 1)
}

static double step(State *s, const Row *row)
{
    scale(s, row->inputs);
    hidden(s);
    double loss = softmax(s, row->targets);
    upper(s, row->rate);
    lower(s, row->rate);
    return loss;
}

REFERENCE()
