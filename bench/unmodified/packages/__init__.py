"""A package that trains, for the script `several_modules.py`."""
