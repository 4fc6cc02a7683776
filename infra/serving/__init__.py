"""The dream out: an environment of ours behind the interfaces that other trainers speak."""
