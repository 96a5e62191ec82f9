/* W1: XOR 2-4-1, one sample a step, squared error.  float64, strict: every sum in the order of the Python step.
 *
 * How it was tuned: the four hidden units are the four lanes of one vector, weights input-major.  A step is one chain
 * of dependent operations (about 50 cycles), so nothing but its length counts: no loops, no stores before the end,
 * the loss (a call of pow, as in Python) off the chain.  In the loop form the parameters stay in registers. */
#include "harness.h"

extern double pow(double, double);

typedef double v4 __attribute__((vector_size(32)));
typedef long m4 __attribute__((vector_size(32)));

typedef struct {
    v4 w0, w1, b, v; /* of the hidden units: both weights, bias; and their weights in the output */
    double c;
} State;

static void open_state(State *s, const double *p)
{
    for (int j = 0; j < 4; j++)
        s->w0[j] = p[3 * j], s->w1[j] = p[3 * j + 1], s->b[j] = p[3 * j + 2], s->v[j] = p[12 + j];
    s->c = p[16];
}

static void parameters(const State *s, double *p)
{
    for (int j = 0; j < 4; j++)
        p[3 * j] = s->w0[j], p[3 * j + 1] = s->w1[j], p[3 * j + 2] = s->b[j], p[12 + j] = s->v[j];
    p[16] = s->c;
}

/* One step on parameters in registers; returns the difference that is squared in the loss. */
static inline __attribute__((always_inline)) double move(State *s, double x0, double x1, double y, double rate)
{
    v4 z = s->b + s->w0 * x0 + s->w1 * x1;
    m4 on = z > 0.0;
    v4 h = (v4)(on & (m4)z);
    v4 t = s->v * h;
    double d = s->c + t[0] + t[1] + t[2] + t[3] - y;
    double g = 2.0 * d;
    v4 gz = (v4)(on & (m4)(s->v * g));
    s->v -= rate * (h * g);
    s->c -= rate * g;
    s->w0 -= rate * (x0 * gz);
    s->w1 -= rate * (x1 * gz);
    s->b -= rate * gz;
    return d;
}

static double step(State *s, const Row *row)
{
    const double *x = row->inputs;
    return pow(move(s, x[0], x[1], *(const double *)row->targets, row->rate), 2.0);
}

REFERENCE()

EXPORT void reference_loop(State *s, const Row *rows, long count, double *losses)
{
    State r = *s;
    for (long k = 0; k < count; k++) {
        const double *x = rows[k].inputs;
        losses[k] = pow(move(&r, x[0], x[1], *(const double *)rows[k].targets, rows[k].rate), 2.0);
    }
    *s = r;
}
