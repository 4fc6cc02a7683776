"""Tracking: MLflow runs, traces, costs, progress."""
