"""Rows of one kernel on several threads, each with a memory of its own."""
