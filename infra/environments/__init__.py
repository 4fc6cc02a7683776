"""Real environments, which implement the ports of schemas/ports.py."""
