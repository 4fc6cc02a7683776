"""Promotion: judge a policy again, ask for approval, promote, roll back, export."""
