/* What every reference has in common: a row of arguments, and a loop that calls the step once for each row.
 *
 * A reference defines `State`, `open`, `step` and `parameters` (all static), then says REFERENCE().  The numbers of
 * a state are exchanged in the order of `model.parameters()`.  The loop calls through a pointer that the compiler
 * cannot see through: one row costs what one call costs, without Python. */
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
    const void *inputs, *targets;
    long count; /* tokens of a document; unused elsewhere */
    double rate, correction;
} Row;

#define REFERENCE()                                                                            \
    EXPORT void *reference_open(const double *numbers)                                         \
    {                                                                                          \
        State *s = aligned_alloc(4096, (sizeof(State) + 4095) / 4096 * 4096);                  \
        memset(s, 0, sizeof *s);                                                               \
        open_state(s, numbers);                                                                \
        return s;                                                                              \
    }                                                                                          \
    EXPORT void reference_close(void *s) { free(s); }                                          \
    EXPORT void reference_parameters(const State *s, double *numbers) { parameters(s, numbers); } \
    EXPORT void reference_calls(State *s, const Row *rows, long count, double *losses)         \
    {                                                                                          \
        double (*volatile call)(State *, const Row *) = step;                                  \
        for (long k = 0; k < count; k++)                                                       \
            losses[k] = call(s, rows + k);                                                     \
    }
