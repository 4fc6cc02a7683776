"""Prefect: the embedded server, stored results, automations, events."""
