"""From logs to a recipe: convert logs, draft their mapping, draft a recipe."""
