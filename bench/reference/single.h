/* Vectors of 16 floats: sums across lanes, exp and tanh.  For the references of the fast workloads. */
#ifdef __AVX512F__
#include <immintrin.h>
#endif

typedef float v16 __attribute__((vector_size(64)));
typedef int i16 __attribute__((vector_size(64)));
typedef unsigned char b16 __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

INLINE v16 all(float x) { return x - (v16){0}; }
INLINE v16 load(const float *p)
{
    v16 v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store(float *p, v16 v) { memcpy(p, &v, sizeof v); }
/* 16 bytes as numbers. gcc 12 converts them one by one unless told how. */
INLINE v16 floats(const unsigned char *p)
{
    b16 bytes;
    memcpy(&bytes, p, sizeof bytes);
#ifdef __AVX512F__
    return (v16)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32((__m128i)bytes));
#else
    return __builtin_convertvector(bytes, v16);
#endif
}

/* Keeps gcc from loading a value again for each of its uses. */
#ifdef __AVX512F__
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define IN_REGISTER(x)
#endif

INLINE v16 choose(i16 mask, v16 a, v16 b) { return (v16)((mask & (i16)a) | (~mask & (i16)b)); }
INLINE v16 larger(v16 a, v16 b) { return choose(a > b, a, b); }
INLINE v16 smaller(v16 a, v16 b) { return choose(a < b, a, b); }
INLINE v16 positive(v16 a) { return larger(a, all(0.0f)); }

/* Lane k of the result is the sum of the lanes of r[k]: four levels, each adds halves of two vectors. */
INLINE v16 sums(v16 *r)
{
    static const i16 L[8] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
        {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31},
        {0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27},
        {4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31},
        {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29},
        {2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31},
        {0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30},
        {1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31},
    };
    UNROLL for (int level = 0; level < 4; level++)
    {
        int half = 8 >> level;
        UNROLL for (int k = 0; k < half; k++) r[k] =
            __builtin_shuffle(r[k], r[k + half], L[2 * level]) + __builtin_shuffle(r[k], r[k + half], L[2 * level + 1]);
    }
    return r[0];
}

/* 16 x 16, in place: halves of halves change places. */
INLINE void transpose16(v16 *r)
{
    static const i16 L[8] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23},
        {8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31},
        {0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27},
        {4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31},
        {0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29},
        {2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31},
        {0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30},
        {1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31},
    };
    UNROLL for (int level = 0; level < 4; level++)
    {
        int half = 8 >> level;
        UNROLL for (int k = 0; k < 16; k++) if (!(k & half))
        {
            v16 a = __builtin_shuffle(r[k], r[k + half], L[2 * level]);
            v16 b = __builtin_shuffle(r[k], r[k + half], L[2 * level + 1]);
            r[k] = a;
            r[k + half] = b;
        }
    }
}

/* e**x to about 2 ulp: 2**n * 2**f with |f| <= 1/2, the second by its Taylor polynomial of degree 6. */
INLINE v16 exponential(v16 x)
{
    const float round = 12582912.0f; /* 1.5 * 2**23: adding it rounds to an integer */
    x = larger(smaller(x, all(88.0f)), all(-87.0f));
    v16 shifted = x * 1.44269504f + round;
    i16 n = (i16)shifted - (i16)all(round);
    v16 whole = __builtin_convertvector(n, v16);
    v16 f = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
    v16 p = all(1.0f / 720.0f);
    p = p * f + 1.0f / 120.0f;
    p = p * f + 1.0f / 24.0f;
    p = p * f + 1.0f / 6.0f;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    return (v16)((i16)p + (n << 23));
}

/* 1 / x and the square root of x >= 0, from an approximation of 14 bits and one Newton step. */
INLINE v16 reciprocal(v16 x)
{
#ifdef __AVX512F__
    v16 r = (v16)_mm512_rcp14_ps((__m512)x);
    return r * (2.0f - x * r);
#else
    return 1.0f / x;
#endif
}
INLINE v16 root(v16 x)
{
#ifdef __AVX512F__
    v16 r = (v16)_mm512_rsqrt14_ps((__m512)(x + 1e-30f)); /* finite at 0 */
    v16 y = x * r;
    return y + 0.5f * r * (x - y * y);
#else
    for (int k = 0; k < 16; k++)
        x[k] = __builtin_sqrtf(x[k]);
    return x;
#endif
}

/* 1 - 2 / (e**2x + 1): an absolute error of 1e-7, which is what a network's activation needs. */
INLINE v16 hyperbolic(v16 x)
{
    v16 e = exponential(larger(smaller(x, all(9.0f)), all(-9.0f)) * 2.0f) + 1.0f;
    return 1.0f - 2.0f * reciprocal(e);
}
