"""Networks of other architectures, computed by transformers' own forward passes."""
