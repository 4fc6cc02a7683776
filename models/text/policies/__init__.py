"""Policies' formats: what each kind of policy reads and writes."""
