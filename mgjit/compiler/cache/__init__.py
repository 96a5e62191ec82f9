"""Compiled steps that outlive the process."""
