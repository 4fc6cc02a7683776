"""RL methods: groups, advantages, objective, curriculum."""
