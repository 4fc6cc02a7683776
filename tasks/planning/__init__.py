"""Estimates of memory and time before anything starts."""
