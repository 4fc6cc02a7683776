"""Judging without an environment: on logged episodes that are held out."""
