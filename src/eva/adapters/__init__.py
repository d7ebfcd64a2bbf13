"""The ports, implemented: one folder for each technology, none of which knows of another."""
