"""Commands of `dreamgym`. Each imports what it runs only when it is called, so that `--help` answers at once."""
