"""Recordings of episodes: sessions of coding agents, steps of environments, and text."""
