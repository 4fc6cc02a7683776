"""Run a recipe: begin or resume a run, execute it, record its results."""
