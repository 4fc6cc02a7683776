"""Frozen typed records, tables, recipes, ports and errors. Imports neither torch nor Prefect."""
