"""From a Trace to executable code: rolled, lifted, scheduled, written as C, compiled and kept."""
