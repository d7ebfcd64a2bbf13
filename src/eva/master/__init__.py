"""The live driver: the same crank that the simulator turns, with a real clock, cloud and workers.

writer        the one door: event -> durable in the journal -> controller -> commands
memory        what is in the journal, and from there back to the state
hands         commands carried out through the ports, and repeated until they are answered
reconcile     what the state still waits for, after any restart on either side
planner       policies in a process of their own
service       all of it put together, started and stopped
api · client  HTTP for users, and the one client for it
"""
