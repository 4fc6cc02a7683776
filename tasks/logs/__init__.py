"""Logs of agents from elsewhere, as transitions of ours.

files.py reads files, spans.py brings together what belongs together, traces.py and messages.py find conversations in them,
transitions.py makes rows, convert.py keeps them.
"""
