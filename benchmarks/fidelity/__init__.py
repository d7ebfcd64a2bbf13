"""Is what is simulated what runs? One trace, live on this machine and in the simulator.

`python -m benchmarks.fidelity` runs 32 jobs of the paper's workloads on a real cluster (master,
local cloud, workers, one process per task) with time scaled, under Eva and under No-Packing, and
simulates the same; total costs must agree within 5%.

What is the same on both sides by construction: the controller and the policies, the catalog, the
arrivals, how much work a job brings, and the interference matrix. What the machine adds, starting
and ending processes, is measured in the live run (`measured`) and given to the simulator as its
delays, in which the paper's simulator was given measured delays too.
"""
