"""WHERE: the only way to the outside: settings, stores, tracking, engines, real environments."""
