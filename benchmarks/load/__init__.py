"""How much one master carries: workers, live tasks and durable submissions, against its promises.

`python -m benchmarks.load` starts a real master (`eva serve` with its HTTP API, a synced SQLite
journal, mutual TLS, plans by the real policy in a process of its own) and, in another process, a
crowd of workers: each with its own certificate, connection, heartbeats and state machine, as
`eva worker` has them. Only what would run on an instance is pretended: tasks make progress by the
clock, and their checkpoints are numbers in memory.

scenario       how many of everything, and what is submitted
master         the process with the master; its cloud (`cloud`) rents workers of the crowd
crowd          the process with the workers (`light_worker`, `pretended`, `heartbeats`)
submitting     submissions at their times, whether or not the earlier ones are answered
watching       memory and processor time of the master's processes
afterwards     what the journal says when all is over
report         figures, and which promises were kept
"""
