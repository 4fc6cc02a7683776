"""Tasks that create and train models."""
