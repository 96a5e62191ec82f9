"""What user code is written in: scalars, networks, state, functions."""
