"""The memory of kernels: where parameters, gradients and fields of the user's objects live."""
