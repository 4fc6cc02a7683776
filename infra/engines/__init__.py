"""Inference engines outside this process."""
