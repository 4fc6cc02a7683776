"""Only access to the outside: settings, stores, tracking, engines, real environments."""
