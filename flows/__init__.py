"""Prefect flows, recipes and the command line."""
