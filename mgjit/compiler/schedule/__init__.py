"""Passes that decide in which order, in which lanes and registers the nests of a Program run."""
