"""Benchmarks: how fast and how good, printed as tables. Targets are those of the project's plan."""
