"""Tasks that make and train models."""
