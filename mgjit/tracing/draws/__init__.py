"""Random numbers drawn in a step: intercepted while it is traced, drawn by Python before each compiled call."""
