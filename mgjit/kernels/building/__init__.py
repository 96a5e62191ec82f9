"""Other processes that build code while the program goes on."""
