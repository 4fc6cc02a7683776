"""Running processes: guards, interrupts, ranks, Ray, memory, reachability."""
