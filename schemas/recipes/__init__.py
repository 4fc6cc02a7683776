"""Recipes: sections, environments, digests, log mappings."""
