"""Texts that networks read and write: prompts, entity renaming."""
