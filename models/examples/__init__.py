"""Examples and groups of episodes to learn from, made of trajectories."""
