"""Logs of agents from elsewhere, as transitions of ours.

files.py reads files, traces.py and messages.py find conversations in them, transitions.py makes rows, convert.py keeps them.
"""
