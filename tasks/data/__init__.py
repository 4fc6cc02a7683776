"""Tasks that turn logs into checked, annotated, stored transitions, and read them back."""
