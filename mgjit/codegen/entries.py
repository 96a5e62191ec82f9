"""Further ways to call the step of a generated C file.

`mgjit_loop` runs many steps.  Its argument has two pointers: the pointer block of the step, and numbers: how many
rows are to be run, how many have been, how many pointers move, and for each of these its index in the block and the
distance in bytes from one row to the next.
"""

from __future__ import annotations

LOOP = """\
EXPORT int mgjit_loop(void *const *m)
{
    void **const block = (void **)m[0];
    long long *const plan = (long long *)m[1];
    for (long long row = 0; row < plan[0]; row++) {
        mgjit_step(block);
        for (long long k = 3; k < 3 + 2 * plan[2]; k += 2)
            block[plan[k]] = (char *)block[plan[k]] + plan[k + 1];
    }
    plan[1] += plan[0];
    return 0;
}
"""
