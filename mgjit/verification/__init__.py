"""A kernel proves itself: a call that runs both as plain Python and as a kernel, and is compared."""
