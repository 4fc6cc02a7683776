"""Files: atomic, durable, private."""
