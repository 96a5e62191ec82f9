"""What surrounds a step: the objects it can reach, where their numbers lie, and whether anything has changed."""
