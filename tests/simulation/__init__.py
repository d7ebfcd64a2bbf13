"""The seeded simulation suite: random small clusters, random faults, every promise checked."""
