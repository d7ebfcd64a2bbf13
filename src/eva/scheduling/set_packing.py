"""Full reconfiguration by what sets save: a second opinion beside Algorithm 1.

Algorithm 1 fills the dearest instance with the dearest tasks for as long as that pays at all, and
so spends much of the saving on interference and on partners that others needed more. Here every
small set that is worth more than its instance is listed, the sets are taken in the order of what
they save per dollar that their tasks would cost alone, and Algorithm 1 places whatever is left.
"""

from __future__ import annotations

import numpy as np

from eva.model.catalog import Catalog
from eva.scheduling.exact.small_sets import SmallSets, list_small_sets
from eva.scheduling.packing import Ints, Packer, Pattern, pack

MOST_TASKS = 4  # with interference, larger sets are hardly ever worth while
MOST_GROWN = 8_000  # sets looked at per size; more is hardly better and costs time every round
MOST_CLASSES = 120  # beyond that, listing sets costs more than a round should


def pack_by_sets(packer: Packer, catalog: Catalog, stock: Ints) -> list[Pattern]:
    """Cover the stock with the sets that save most per dollar; Algorithm 1 alone if too many."""
    if np.count_nonzero(stock) > MOST_CLASSES:
        return pack(packer, catalog, stock)
    listed = list_small_sets(packer, catalog, stock, MOST_TASKS, MOST_GROWN)
    patterns, left = _take_in_order(listed, stock)
    return patterns + pack(packer, catalog, left)


def _take_in_order(listed: SmallSets, stock: Ints) -> tuple[list[Pattern], Ints]:
    saved = listed.worth - listed.hourly_micros
    paying = np.flatnonzero(saved > 0)
    order = paying[np.argsort(-(saved[paying] / listed.alone[paying]), kind="stable")]
    left = stock.copy()
    patterns: list[Pattern] = []
    while len(order):
        best = int(order[0])
        needed = listed.sets[best]
        copies = int((left[needed > 0] // needed[needed > 0]).min())
        left -= copies * needed
        patterns.append(listed.pattern(best, copies))
        order = order[(listed.sets[order] <= left).all(axis=1)]
    return patterns, left
