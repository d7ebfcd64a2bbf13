"""Pure planning: a snapshot goes in, a plan comes out.

reservation_price   what a task is worth: the cheapest instance type that hosts it alone
valuation           what a set of tasks is worth together (TNRP), single-task and multi-task
task_classes        tasks that packing cannot tell apart, so that cost does not grow with tasks
packing             Algorithm 1 over classes
expansion           patterns back to task ids, keeping tasks where they already run
reconfiguration     full and partial reconfiguration
migration_cost      M: what it costs to get from here to there
event_rate          lambda, p and the horizon D-hat over which a saving counts
eva                 the ensemble policy; ablations are its parameters
exact/              linear-programming bounds and near-optimal policies
baselines/          no-packing, Stratus, Synergy, Owl
"""
