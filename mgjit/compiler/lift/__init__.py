"""Lift: a folded trace becomes a Program, whose operands are affine in the loops or tables."""
