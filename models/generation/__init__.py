"""Generation: the torch engine, and one that follows newer weights."""
