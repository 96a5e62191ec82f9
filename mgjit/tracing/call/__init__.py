"""The arguments and results of calls, and the columns of `.loop`."""
