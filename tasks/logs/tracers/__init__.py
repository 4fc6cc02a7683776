"""Traces of agents, by what recorded them: each module returns the conversation of a trace."""
