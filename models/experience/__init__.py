"""The experience model: what it reads and writes, prediction, reasoning traces."""
