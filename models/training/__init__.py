"""Training: supervised fine-tuning, policy updates, checkpoints, ranks."""
