"""Running processes: guards, interrupts, ranks, Ray, health."""
