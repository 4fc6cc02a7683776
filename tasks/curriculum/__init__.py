"""The tasks of a round: which come next, and new ones."""
