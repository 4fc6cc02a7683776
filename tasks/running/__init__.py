"""How tasks run: cache keys, stored artifacts, engines, workers, maintenance."""
