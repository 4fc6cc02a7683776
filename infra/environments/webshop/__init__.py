"""WebShop: find and buy what is asked for, in a shop of a million products (arXiv 2207.01206), on a server that the user runs.

server.py speaks to it, view.py writes its states, shopper.py buys by rule, annotator.py explains, environment.py is the door.
"""
