"""Shapes of messages by those who write them: each is a function that returns what it knows in OpenAI's shape."""
