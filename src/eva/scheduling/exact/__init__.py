"""The exact side: how cheap the cluster could be at the very least, and plans close to that.

patterns    classes of equal demand, and the sets of them worth renting an instance type for
search      finding such sets: listing, pricing, with and without interference
lp          linear programs over sets of tasks, by column generation
bounds      lower bounds that are true bounds, with a price per task that proves them
rounding    from the relaxation to whole instances: floor, dive, integer program
choose      the best of what the dives come by, completed by Algorithm 1
covering    least cost without interference
small_sets  sets of a few tasks, valued with interference and with doubt
optimal     the policy of least hourly cost
net_value   the policy of greatest hourly value less cost, and its bound
ilp         the integer program of the paper, verbatim, for a dozen tasks
"""
