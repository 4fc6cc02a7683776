"""Parts of a run's report: gain, trust, costs, charts, episodes."""
