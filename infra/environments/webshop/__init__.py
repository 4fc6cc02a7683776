"""WebShop: find and buy a requested product in a shop of a million (arXiv 2207.01206), on a server that the user runs.

server.py speaks to the server, view.py writes its states, shopper.py buys by rule, annotator.py explains transitions,
environment.py is the vectorised environment.
"""
