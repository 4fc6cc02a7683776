"""Storage: objects, tables, records of runs, leases."""
