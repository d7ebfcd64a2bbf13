"""Tasks as plain processes: the embedded default, for machines without Docker."""
