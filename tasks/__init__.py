"""Prefect tasks, one per file and one verb each: fetch by reference, call models, store, return a reference."""
