"""WHAT: one task per file, one verb each: fetch by reference, call models, store, return a reference."""
