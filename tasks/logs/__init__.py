"""Import of other systems' agent logs as logged transitions.

files.py reads records, spans.py groups spans by trace, traces.py and messages.py find conversations, transitions.py
produces rows, convert.py writes them.
"""
