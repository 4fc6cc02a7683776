"""Traces as platforms for agents store and export them: each module is a kind of logs."""
