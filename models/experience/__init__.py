"""The experience model: prediction, reasoning traces, retrieval."""
