"""Reading what people hand us: catalogs, task files, job files.

Strict, and complete in its complaints: every problem of a file is found in one pass and reported
with file, line and field (`eva.model.errors.InputError`), because nobody wants to mend a file one
error at a time. Numbers go from text to integers through `Decimal` and never through a float.

guarded_yaml    YAML as a tree with line numbers, with limits on size, nesting and aliases
tables          rows of named cells from CSV or YAML, whichever the file holds
amounts         cells to numbers, with bounds
problems        the collector of complaints, and did-you-mean
catalogs        price lists, built in or yours
task_files      tasks for `eva solve`
"""
