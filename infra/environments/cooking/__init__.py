"""TextWorld's cooking challenge: find, take, cook, cut, prepare and eat.

games.py generates the games, view.py turns facts into state text, expert.py solves them, annotator.py explains them,
environment.py is the vectorised environment.
"""
