/* The widest vectors of floats that the flags allow, L lanes: sums across lanes, exp and tanh.  For the references of the
 * fast workloads.  gcc keeps no vector in registers that is wider than the processor's. */
#if defined(__AVX512F__)
#define L 16
#elif defined(__AVX2__)
#define L 8
#else
#define L 4
#endif
#ifdef __SSE4_1__
#include <immintrin.h>
#endif

typedef float vf __attribute__((vector_size(4 * L)));
typedef int vi __attribute__((vector_size(4 * L)));
typedef unsigned char vb __attribute__((vector_size(L)));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

INLINE vf all(float x) { return x - (vf){0}; }
INLINE vf load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store(float *p, vf v) { memcpy(p, &v, sizeof v); }
/* L bytes as numbers. gcc 12 converts them one by one unless told how. */
INLINE vf floats(const unsigned char *p)
{
#if L == 16
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
#elif L == 8
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
#elif defined(__SSE4_1__)
    int four;
    memcpy(&four, p, sizeof four);
    return (vf)_mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
#else
    vb bytes;
    memcpy(&bytes, p, sizeof bytes);
    return __builtin_convertvector(bytes, vf);
#endif
}

/* Keeps gcc from loading a value again for each of its uses. */
#ifdef __SSE__
#define IN_REGISTER(x) __asm__("" : "+v"(x))
#else
#define IN_REGISTER(x)
#endif

INLINE vf choose(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
INLINE vf larger(vf a, vf b) { return choose(a > b, a, b); }
INLINE vf smaller(vf a, vf b) { return choose(a < b, a, b); }
INLINE vf positive(vf a) { return larger(a, all(0.0f)); }

/* Of every 2 * half lanes of two vectors, the first halves come into one and the second halves into the other. */
#if L == 16
#define LANES(F, h) F(0, h), F(1, h), F(2, h), F(3, h), F(4, h), F(5, h), F(6, h), F(7, h), \
    F(8, h), F(9, h), F(10, h), F(11, h), F(12, h), F(13, h), F(14, h), F(15, h)
#elif L == 8
#define LANES(F, h) F(0, h), F(1, h), F(2, h), F(3, h), F(4, h), F(5, h), F(6, h), F(7, h)
#else
#define LANES(F, h) F(0, h), F(1, h), F(2, h), F(3, h)
#endif
#define FIRST(k, h) ((k) & (h) ? L + (k) - (h) : (k))
#define SECOND(k, h) ((k) & (h) ? L + (k) : (k) + (h))
#define EXCHANGE(h)                                                     \
    if (half == h) {                                                    \
        *a = __builtin_shuffle(x, y, (vi){LANES(FIRST, h)});            \
        *b = __builtin_shuffle(x, y, (vi){LANES(SECOND, h)});           \
    }
INLINE void exchange(vf *a, vf *b, int half)
{
    vf x = *a, y = *b;
#if L == 16
    EXCHANGE(8)
#endif
#if L >= 8
    EXCHANGE(4)
#endif
    EXCHANGE(2)
    EXCHANGE(1)
}

/* Lane k of the result is the sum of the lanes of r[k], of L vectors: each level adds halves of two. */
INLINE vf sums(vf *r)
{
    UNROLL for (int half = L / 2; half; half /= 2)
    {
        UNROLL for (int k = 0; k < half; k++)
        {
            exchange(&r[k], &r[k + half], half);
            r[k] += r[k + half];
        }
    }
    return r[0];
}

/* L x L, in place: halves of halves change places. */
INLINE void transpose(vf *r)
{
    UNROLL for (int half = L / 2; half; half /= 2)
    {
        UNROLL for (int k = 0; k < L; k++) if (!(k & half)) exchange(&r[k], &r[k + half], half);
    }
}

/* e**x to about 2 ulp: 2**n * 2**f with |f| <= 1/2, the second by its Taylor polynomial of degree 6. */
INLINE vf exponential(vf x)
{
    const float round = 12582912.0f; /* 1.5 * 2**23: adding it rounds to an integer */
    x = larger(smaller(x, all(88.0f)), all(-87.0f));
    vf shifted = x * 1.44269504f + round;
    vi n = (vi)shifted - (vi)all(round);
    vf whole = __builtin_convertvector(n, vf);
    vf f = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
    vf p = all(1.0f / 720.0f);
    p = p * f + 1.0f / 120.0f;
    p = p * f + 1.0f / 24.0f;
    p = p * f + 1.0f / 6.0f;
    p = p * f + 0.5f;
    p = p * f + 1.0f;
    p = p * f + 1.0f;
    return (vf)((vi)p + (n << 23));
}

/* 1 / x and the square root of x >= 0, from an approximation of 14 or 12 bits and one Newton step. */
#if L == 16
#define ABOUT_RECIPROCAL(x) (vf)_mm512_rcp14_ps((__m512)(x))
#define ABOUT_INVERSE_ROOT(x) (vf)_mm512_rsqrt14_ps((__m512)(x))
#elif L == 8
#define ABOUT_RECIPROCAL(x) (vf)_mm256_rcp_ps((__m256)(x))
#define ABOUT_INVERSE_ROOT(x) (vf)_mm256_rsqrt_ps((__m256)(x))
#elif defined(__SSE4_1__)
#define ABOUT_RECIPROCAL(x) (vf)_mm_rcp_ps((__m128)(x))
#define ABOUT_INVERSE_ROOT(x) (vf)_mm_rsqrt_ps((__m128)(x))
#endif
INLINE vf reciprocal(vf x)
{
#ifdef ABOUT_RECIPROCAL
    vf r = ABOUT_RECIPROCAL(x);
    return r * (2.0f - x * r);
#else
    return 1.0f / x;
#endif
}
INLINE vf root(vf x)
{
#ifdef ABOUT_INVERSE_ROOT
    vf r = ABOUT_INVERSE_ROOT(x + 1e-30f); /* finite at 0 */
    vf y = x * r;
    return y + 0.5f * r * (x - y * y);
#else
    for (int k = 0; k < L; k++)
        x[k] = __builtin_sqrtf(x[k]);
    return x;
#endif
}

/* 1 - 2 / (e**2x + 1): an absolute error of 1e-7, which is what a network's activation needs. */
INLINE vf hyperbolic(vf x)
{
    vf e = exponential(larger(smaller(x, all(9.0f)), all(-9.0f)) * 2.0f) + 1.0f;
    return 1.0f - 2.0f * reciprocal(e);
}
