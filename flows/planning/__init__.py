"""Before a run: load the recipe, plan and price it, check that its services are there."""
