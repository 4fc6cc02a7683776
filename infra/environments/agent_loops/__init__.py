"""Agents of a user's own as environments: each runs its loop, and the policy answers its requests."""
