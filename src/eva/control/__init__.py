"""The control loop as a state machine without I/O: `handle(event, now) -> commands`.

The simulator and the live master turn the same crank; nothing here knows which of them it is.

events · commands     the only words that pass through the door
lifecycle             what may follow what, for jobs, tasks and instances: one table each
state · ledger        everything that is remembered, and the bill
controller            the door: one handler per event
scheduler             rounds: the snapshot out, the plan back in, checked against the state found
provisioner           instances: launch, drain, terminate
executor              tasks: start, checkpoint-migrate, stop, restart
throughput_monitor    observations into the co-location table
profiler              standalone speed of tasks that state none
invariants            promises, checked after every event in tests and simulations
journal               events to and from JSON, and folding them back into a state
"""
