"""What a simulation means: reports beside references, and the paper's experiments as data.

no_packing    what hosting every task alone costs, in closed form
references    that, and what no scheduler could beat, for a trace and a catalog
report        one policy's measures and its bill, for programs
comparison    several policies over one trace under one `Scenario`
stays         which task was where and when, for pictures
delays        how delays are named on command lines and in files
workers       processes for long work
timeline_plot the cluster over time as a picture (the extra `plot`)
experiments/  one declarative file per experiment of the paper
"""
