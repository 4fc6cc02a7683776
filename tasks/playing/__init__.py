"""Tasks that play episodes, in the experience model and in real environments."""
