"""Foundations that tasks run on: cache keys, stored artifacts, engines, workers, maintenance."""
