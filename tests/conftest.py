"""A test run that was started in the background inherits that interrupts are ignored; some tests send them."""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
