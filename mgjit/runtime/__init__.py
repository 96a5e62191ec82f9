"""Running a compiled step: kernels, their memory, and the call into C."""
