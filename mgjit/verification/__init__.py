"""Verification: some calls run both as plain Python and as a kernel, and the results are compared."""
