"""Serving: an environment behind the interfaces of other trainers (OpenEnv, Gymnasium)."""
