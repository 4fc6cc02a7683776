"""Progress of a run in the terminal: what runs, how far it is, and what slows it down."""
