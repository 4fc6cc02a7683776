"""Files of logs: found, opened, and read record by record."""
