"""Lengths that share code: traces that differ in the lengths of sequences become one Program."""
