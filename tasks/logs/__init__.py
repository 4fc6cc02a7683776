"""Import of other systems' agent logs as logged transitions.

sources/ reads records; tracers/, platforms/, recordings/, generic/ and messages.py find conversations in them; transitions.py produces
rows, convert.py writes them.
"""
