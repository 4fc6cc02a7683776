"""BrowserGym: WebArena and other benchmarks on websites that the user runs (arXiv 2412.05467).

view.py writes a page's state from its accessibility tree and knows the actions, game.py plays one task, environment.py
is the vectorised environment.
"""
