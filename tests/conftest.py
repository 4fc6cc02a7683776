"""How every test process begins: interrupts are heard, and networks use one thread, since two processes share the cores.

A test run that was started in the background inherits that interrupts are ignored, and some tests send them.
"""

import os
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.update(OMP_NUM_THREADS="1", DREAMGYM_NUM_THREADS="1")
