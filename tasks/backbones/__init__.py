"""Tasks that fetch or make the backbone."""
