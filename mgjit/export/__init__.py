"""Exported steps: self-contained C99, with the numbers of the compiled step, for programs without Python."""
