"""Rollouts of groups of episodes, and scripted behaviour policies."""
