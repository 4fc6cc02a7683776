"""ALFWorld: household tasks in text (arXiv 2010.03768).

files.py finds the games, game.py plays one, once.py makes that fast, memory.py remembers what was seen, view.py writes
the states, annotator.py explains them, dealt.py assigns games to splits, environment.py is the vectorised environment.
"""
