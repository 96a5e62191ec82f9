"""Finding a C compiler, choosing its flags, running it."""
