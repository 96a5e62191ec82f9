"""Functions that plain calls of a step call again and again, such as the loss of a sequence, compiled by themselves."""
