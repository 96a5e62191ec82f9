"""Many cores: ensembles of one step, and the rows of a loop in parallel."""
