"""Run a recipe: begin or resume a run, do it, write down its results."""
