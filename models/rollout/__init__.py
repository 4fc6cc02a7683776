"""Rollouts: play groups of episodes; scripted behaviour policies."""
