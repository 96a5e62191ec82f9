"""All passes in order, from a Trace to a Program that code is made of."""
