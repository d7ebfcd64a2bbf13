"""Traces: jobs that arrived somewhere, sometime, and can be made to arrive again.

Whatever the file format, a trace becomes one `Trace` (`trace.py`): formats in (`load_trace`),
generators (`synthetic.py`, `sampled.py`), changes of composition (`variations.py`), statistics,
and what is known about the paper's workloads and how they disturb each other.
"""
