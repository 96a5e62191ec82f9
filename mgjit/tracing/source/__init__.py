"""The source of the user's functions, rewritten so that traced numbers can go where Python asks for real ones."""
