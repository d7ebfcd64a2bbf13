"""The agent on every instance: a small state machine without I/O, and what carries it out."""
