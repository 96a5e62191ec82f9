"""A Python call becomes a Trace: flat arrays of scalar operations."""
