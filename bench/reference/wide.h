/* The widest vectors of doubles that the flags allow: L lanes, and how they are transposed.  For the strict workloads.
 * gcc keeps no vector in registers that is wider than the processor's. */
#if defined(__AVX512F__)
#define L 8
#elif defined(__AVX__)
#define L 4
#else
#define L 2
#endif

typedef double vd __attribute__((vector_size(8 * L)));
typedef long md __attribute__((vector_size(8 * L)));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 32")

INLINE vd pick(vd a, vd b, md lanes) { return __builtin_shuffle(a, b, lanes); }
INLINE vd positive(vd z) { return (vd)((z > 0.0) & (md)z); }
INLINE vd gated(vd h, vd g) { return (vd)((h > 0.0) & (md)g); }

/* L x L, in place. */
INLINE void transpose(vd *r)
{
#if L == 8
    vd a[8], b[8];
    UNROLL for (int k = 0; k < 8; k += 2)
    {
        a[k] = pick(r[k], r[k + 1], (md){0, 8, 2, 10, 4, 12, 6, 14});
        a[k + 1] = pick(r[k], r[k + 1], (md){1, 9, 3, 11, 5, 13, 7, 15});
    }
    UNROLL for (int k = 0; k < 8; k += 4) UNROLL for (int i = 0; i < 2; i++)
    {
        b[k + i] = pick(a[k + i], a[k + i + 2], (md){0, 1, 8, 9, 4, 5, 12, 13});
        b[k + i + 2] = pick(a[k + i], a[k + i + 2], (md){2, 3, 10, 11, 6, 7, 14, 15});
    }
    UNROLL for (int k = 0; k < 4; k++)
    {
        r[k] = pick(b[k], b[k + 4], (md){0, 1, 2, 3, 8, 9, 10, 11});
        r[k + 4] = pick(b[k], b[k + 4], (md){4, 5, 6, 7, 12, 13, 14, 15});
    }
#elif L == 4
    vd a = pick(r[0], r[1], (md){0, 4, 2, 6}), b = pick(r[0], r[1], (md){1, 5, 3, 7});
    vd c = pick(r[2], r[3], (md){0, 4, 2, 6}), d = pick(r[2], r[3], (md){1, 5, 3, 7});
    r[0] = pick(a, c, (md){0, 1, 4, 5}), r[1] = pick(b, d, (md){0, 1, 4, 5});
    r[2] = pick(a, c, (md){2, 3, 6, 7}), r[3] = pick(b, d, (md){2, 3, 6, 7});
#else
    vd a = pick(r[0], r[1], (md){0, 2}), b = pick(r[0], r[1], (md){1, 3});
    r[0] = a, r[1] = b;
#endif
}
