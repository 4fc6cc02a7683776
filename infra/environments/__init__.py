"""Real environments, each behind the ports of schemas/ports.py."""
