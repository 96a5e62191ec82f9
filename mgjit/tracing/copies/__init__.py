"""Numbers in the user's objects that are copied into the memory of a kernel, and back."""
