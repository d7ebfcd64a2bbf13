"""Tasks as Docker containers."""
