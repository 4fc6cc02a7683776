"""Runs: begin, resume, find, list and explain executions of recipes."""
