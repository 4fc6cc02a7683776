"""Stored runs: find, list and explain them; the key that decides whether a new one begins."""
