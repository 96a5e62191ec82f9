"""Code generation: from a Program to C, or to Python if there is no compiler."""
