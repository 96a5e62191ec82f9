"""One trace: from the user's function to a Trace."""
