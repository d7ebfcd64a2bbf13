"""The controller's first driver: a virtual clock and a cloud that exists on paper only.

Nothing ticks. A heap of what happens next drives the very controller that the live master runs;
what it commands is priced with modelled delays, and the only way to its state is `handle`.

settings       what may be chosen about a simulation
timeline       the heap and the virtual clock
world          what physically exists: instances, copies of tasks, jobs
cloud          instances come and go, with delays
phases         copies start and stop: fetch, build, run, kill, upload
progress       how fast jobs advance beside each other, and when they end
observation    what the ThroughputMonitor gets to see of that
delays         as given, scaled, or drawn from a range
faults         what goes wrong, seeded
messenger      word from the world to the controller, late or twice where the faults say so
recorder       time-weighted measures
driver         `simulate`: the loop around all of it
result · rows  totals and rows, for reports made elsewhere
"""
