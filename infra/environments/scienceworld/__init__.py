"""ScienceWorld: experiments of a school's science class, in text (arXiv 2203.07540).

view.py writes its states, game.py plays one game in Java, annotator.py explains, environment.py is the door.
"""
