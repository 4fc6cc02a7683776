"""MiniWoB++: small tasks on web pages, in a real browser (arXiv 1802.08802).

view.py writes a page's state and reads actions, experts.py solves the tasks by rule, browser.py is Chromium, page.py
plays one task in it, annotator.py explains transitions, environment.py is the vectorised environment.
"""
