"""ALFWorld: household tasks in text (arXiv 2010.03768).

files.py finds the games, game.py plays one, view.py writes its states, behaviour.py tells what nearly works,
annotator.py explains, environment.py is the door.
"""
