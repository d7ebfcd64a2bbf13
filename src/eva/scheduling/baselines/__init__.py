"""The schedulers that Eva is measured against, each in one file, each saying what it is given."""
