"""A Program becomes source: C for a compiler, or Python where there is none."""
