"""What is counted of a file of callgrind; nothing is run."""

from __future__ import annotations

from bench.instructions import counts_of

KERNEL = "0123456789abcdef0123456789abcdef.so"


def test_kernels_and_mathematics_are_counted_and_python_is_not() -> None:
    text = f"""\
events: Ir
ob=(1) /usr/lib/libpython3.11.so.1.0
fl=(1) ceval.c
fn=(1) _PyEval_EvalFrameDefault
12 1000
cob=(2) /cache/{KERNEL}
cfn=(2) mgjit_step
calls=3 0
12 600
ob=(2)
fn=(2)
+4 150
* 50
cob=(3) /lib/libm.so.6
cfi=(2) e_exp.c
cfn=(3) exp
calls=10 0
-2 400
ob=(3)
fn=(3)
7 400
"""
    assert counts_of(text) == {"mgjit_step": 200, "exp": 400}
