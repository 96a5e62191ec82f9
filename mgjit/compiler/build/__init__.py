"""From a Program to code that can be called: what is made, where it is kept, and which steps share it."""
