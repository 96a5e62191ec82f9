"""What a call brings and takes: arguments, columns of `.loop`, results."""
