"""The command line: parse, call, render.

One file per command. Command modules import typer alone; whatever a command needs it imports when
it runs, so that `eva --help` and shell completion do not wait for numpy or a solver.

Exit codes: 0 done, 1 it did not work, 2 the input or the usage is wrong, 130 interrupted.
"""
