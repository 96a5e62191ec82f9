"""exp, log, tanh and pow on vectors, as C text for compilers with vector extensions (gcc, clang).

`source.vector_functions` makes the text.  Strict functions perform the sequence of roundings of the common C
libraries on every lane; fast functions are shorter and state their error.
"""
