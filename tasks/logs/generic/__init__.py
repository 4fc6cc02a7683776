"""Episodes that anybody's program may write: steps, rows of messages, requests with their responses, and text."""
