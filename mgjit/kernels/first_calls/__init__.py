"""Calls without a kernel: what has earned a trace, what is being built, what runs as plain Python."""
