"""Passes: a Trace is rolled and lifted to a Program, differentiated, simplified."""
