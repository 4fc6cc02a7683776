"""Measurement: fidelity, calibration, the gate and its statistics."""
