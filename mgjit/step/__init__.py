"""What `mgjit.compile` returns: the compiled step, its calls, and what can be asked of it."""
