"""Tasks that evaluate, judge, promote and report."""
