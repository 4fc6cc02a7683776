"""Promotion: the ledger, the model registry, panels of test tasks."""
