"""Files: whole or not at all, durable, private."""
