"""What runs a compiled step: buffers, the call into C, the kernel."""
