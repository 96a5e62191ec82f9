"""Passes that differentiate a Program and make less work of it, whatever runs it."""
