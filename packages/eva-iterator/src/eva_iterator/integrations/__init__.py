"""One-line callbacks. Each module imports its framework when it is imported, and only then."""
