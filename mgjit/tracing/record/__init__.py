"""What is recorded of a step: opcodes, the recorder, and the objects that stand for numbers while a step is traced."""
