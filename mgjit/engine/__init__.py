"""The engine that user code is written with: scalars, networks, state, functions."""
