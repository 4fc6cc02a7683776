"""Retrieval of past experience: the replay index, its encoders, and demonstrations as text."""
