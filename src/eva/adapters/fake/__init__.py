"""Stand-ins that keep the contract of a port in memory, for tests and simulations of a worker."""
