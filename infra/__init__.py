"""WHERE: the only doors to the outside: settings, stores, tracking, engines, real environments."""
