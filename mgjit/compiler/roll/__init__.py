"""Roll: the repetitions of a flat trace become nested loops, also those that grow."""
