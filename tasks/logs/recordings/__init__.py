"""Recordings of episodes that are no traces, and text."""
