"""From a call to a Trace: what the step can reach, its source, its arguments, and what it does."""
