"""ScienceWorld: experiments of a school's science class, in text (arXiv 2203.07540).

view.py writes its states, memory.py remembers what was seen, plan.py follows its solutions, game.py plays one game in
Java, named.py and annotator.py explain transitions, environment.py is the vectorised environment.
"""
