"""Eva: rents the cheapest set of cloud instances that hosts your batch jobs.

ARCHITECTURE.md is the map of the rooms below this package.
"""

__version__ = "0.1.0"
