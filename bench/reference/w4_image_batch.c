/* W4: 784-50-10, 128 images of bytes a step, softmax cross-entropy.  float32, fast.
 *
 * How it was tuned: 10.2 million multiply-adds, nearly all in two products of matrices, and 32 a cycle is the most this
 * machine does.  50 units would fill 64 lanes, so the lanes are pixels both times, 784 = 49 x 16:
 * - forward, 4 images x 4 units are 16 sums over 49 vectors; the lanes of the 16 are then added in a tree of shuffles;
 *   (gcc loads an operand of several products again for each, which makes loads the limit: IN_REGISTER, 20 %);
 * - backward, 5 units x 4 vectors of pixels are 20 sums over the 128 images, subtracted from the weights in place, so
 *   that no gradient is ever stored.
 * Pixels become floats once.  The upper layer and the softmax have images as lanes and cost 3 %. */
#include "harness.h"
#include "single.h"

extern double log(double);

enum { IMAGES = 128, PIXELS = 784, UNITS = 50, SCORES = 10 };

typedef struct {
    float w[UNITS][PIXELS] __attribute__((aligned(64)));
    float u[SCORES][64] __attribute__((aligned(64)));
    float b[64] __attribute__((aligned(64))), c[16];
    float x[IMAGES][PIXELS] __attribute__((aligned(64)));
    float h[IMAGES][64] __attribute__((aligned(64))), g[IMAGES][64] __attribute__((aligned(64)));
    v16 z[SCORES][IMAGES / 16];
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
    for (int i = 0; i < IMAGES * PIXELS; i += 16) {
        *(v16 *)(x + i) = floats(pixels + i) * (1.0f / 255.0f);
    }
}

/* rows x columns sums of products of images and units, in the lanes of one vector. */
#define PRODUCTS(ROWS, COLUMNS)                                                                              \
    {                                                                                                        \
        v16 a[16] = {0};                                                                                     \
        for (int i = 0; i < PIXELS; i += 16) {                                                               \
            v16 w[COLUMNS];                                                                                  \
            UNROLL for (int j = 0; j < COLUMNS; j++)                                                         \
            {                                                                                                \
                w[j] = *(const v16 *)(s->w[unit + j] + i);                                                   \
                IN_REGISTER(w[j]);                                                                           \
            }                                                                                                \
            UNROLL for (int n = 0; n < ROWS; n++)                                                            \
            {                                                                                                \
                v16 x = *(const v16 *)(s->x[image + n] + i);                                                 \
                IN_REGISTER(x);                                                                              \
                UNROLL for (int j = 0; j < COLUMNS; j++) a[COLUMNS * n + j] += x * w[j];                     \
            }                                                                                                \
        }                                                                                                    \
        float z[16] __attribute__((aligned(64)));                                                            \
        *(v16 *)z = sums(a);                                                                                 \
        for (int n = 0; n < ROWS; n++)                                                                       \
            for (int j = 0; j < COLUMNS; j++)                                                                \
                s->h[image + n][unit + j] = z[COLUMNS * n + j];                                              \
    }

static void hidden(State *s)
{
    for (int block = 0; block < IMAGES; block += 8)
        for (int unit = 0; unit < 48; unit += 4)
            for (int image = block; image < block + 8; image += 4)
                PRODUCTS(4, 4)
    for (int unit = 48, image = 0; image < IMAGES; image += 8)
        PRODUCTS(8, 2)
    for (int n = 0; n < IMAGES; n++)
        for (int k = 0; k < 64; k += 16)
            store(s->h[n] + k, positive(load(s->h[n] + k) + load(s->b + k)));
}

/* Scores, loss and the gradients of the scores, which take their place. */
static double softmax(State *s, const unsigned char *labels)
{
    v16 product = all(1.0f), chosen = all(0.0f);
    for (int n = 0; n < IMAGES / 16; n++) {
        v16 top = all(-1e30f), total = all(0.0f), z[SCORES];
        for (int j = 0; j < SCORES; j++) {
            v16 r[16];
            UNROLL for (int i = 0; i < 16; i++)
            {
                const float *h = s->h[16 * n + i], *u = s->u[j];
                r[i] = load(h) * load(u) + load(h + 16) * load(u + 16) + load(h + 32) * load(u + 32) + load(h + 48) * load(u + 48);
            }
            z[j] = sums(r) + s->c[j];
            top = larger(top, z[j]);
        }
        v16 label = floats(labels + 16 * n);
        for (int j = 0; j < SCORES; j++) {
            chosen += choose(label == (float)j, z[j] - top, all(0.0f));
            z[j] = exponential(z[j] - top);
            total += z[j];
        }
        product *= total;
        v16 inverse = (1.0f / IMAGES) / total;
        for (int j = 0; j < SCORES; j++)
            s->z[j][n] = z[j] * inverse - choose(label == (float)j, all(1.0f / IMAGES), all(0.0f));
    }
    double loss = 0.0;
    for (int k = 0; k < 16; k++)
        loss += log(product[k]) - chosen[k];
    return loss / IMAGES;
}

/* Gradients of the hidden units, then the upper layer moves. */
static void upper(State *s, float rate)
{
    for (int n = 0; n < IMAGES; n += 4) {
        v16 g[4][4] = {0};
        for (int j = 0; j < SCORES; j++)
            UNROLL for (int i = 0; i < 4; i++) UNROLL for (int v = 0; v < 4; v++)
                g[i][v] += load(s->u[j] + 16 * v) * ((float *)s->z[j])[n + i];
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int v = 0; v < 4; v++)
            store(s->g[n + i] + 16 * v, choose(load(s->h[n + i] + 16 * v) > 0.0f, g[i][v], all(0.0f)));
    }
    for (int j = 0; j < SCORES; j += 5) {
        v16 d[5][4] = {0};
        for (int n = 0; n < IMAGES; n++)
            UNROLL for (int i = 0; i < 5; i++) UNROLL for (int v = 0; v < 4; v++)
                d[i][v] += load(s->h[n] + 16 * v) * ((float *)s->z[j + i])[n];
        UNROLL for (int i = 0; i < 5; i++) UNROLL for (int v = 0; v < 4; v++)
            store(s->u[j + i] + 16 * v, load(s->u[j + i] + 16 * v) - rate * d[i][v]);
    }
    for (int j = 0; j < SCORES; j++) {
        float sum = 0.0f;
        for (int n = 0; n < IMAGES; n++)
            sum += ((float *)s->z[j])[n];
        s->c[j] -= rate * sum;
    }
    v16 b[4] = {0};
    for (int n = 0; n < IMAGES; n++)
        UNROLL for (int v = 0; v < 4; v++) b[v] += load(s->g[n] + 16 * v);
    UNROLL for (int v = 0; v < 4; v++) store(s->b + 16 * v, load(s->b + 16 * v) - rate * b[v]);
}

#define MOVE(ROWS, VECTORS)                                                                                  \
    {                                                                                                        \
        v16 d[ROWS][VECTORS] = {0};                                                                          \
        for (int n = 0; n < IMAGES; n++) {                                                                   \
            v16 x[VECTORS];                                                                                  \
            UNROLL for (int v = 0; v < VECTORS; v++) x[v] = *(const v16 *)(s->x[n] + pixel + 16 * v);        \
            UNROLL for (int j = 0; j < ROWS; j++) UNROLL for (int v = 0; v < VECTORS; v++)                   \
                d[j][v] += x[v] * s->g[n][unit + j];                                                         \
        }                                                                                                    \
        UNROLL for (int j = 0; j < ROWS; j++) UNROLL for (int v = 0; v < VECTORS; v++)                       \
            *(v16 *)(s->w[unit + j] + pixel + 16 * v) -= rate * d[j][v];                                     \
    }

static void lower(State *s, float rate)
{
    for (int pixel = 0; pixel < 768; pixel += 64)
        for (int unit = 0; unit < UNITS; unit += 5)
            MOVE(5, 4)
    for (int pixel = 768, unit = 0; unit < UNITS; unit += 10)
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
