"""Measure one contestant in this process, and print what it returns as JSON.

python -m tests.benchmarks.contestant MODULE FUNCTION
"""

import json
import sys
from importlib import import_module

if __name__ == "__main__":
    module, function = sys.argv[1:]
    print(json.dumps(getattr(import_module(f"tests.benchmarks.{module}"), function)()))
