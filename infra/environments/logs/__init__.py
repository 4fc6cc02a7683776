"""Logs of an environment that is not here: tasks can be checked, and nothing can be played.

opened.py is the environment, annotator.py writes empty reasoning traces.
"""
