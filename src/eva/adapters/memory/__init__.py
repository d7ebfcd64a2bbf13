"""Adapters that keep everything in memory: for simulations and tests, under the same contracts."""
