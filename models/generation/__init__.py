"""Generation: the torch engine, and an engine that follows newer weights."""
