"""The heaviest one-to-one assignment of a sparse bipartite graph, exact, in integers.

Rows are added one at a time; each looks for the cheapest way to make room for itself (shortest augmenting path with
potentials: Kuhn 1955, Edmonds and Karp 1972). The search never leaves the row's connected component and ends at the
first free place, so a graph in which hardly anything touches costs about as much as reading it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

NOWHERE = -1
"""What a row is assigned to when it stays alone."""


def heaviest(edges: Sequence[Mapping[int, int]]) -> list[int]:
    """For every row the column it goes to, or NOWHERE, such that the sum of weights is the largest possible.

    `edges[row][column]` is a positive weight; a missing edge cannot be used.
    """
    placed = [NOWHERE] * len(edges)
    holder: dict[int, int] = {}
    row_price = [0] * len(edges)
    column_price: dict[int, int] = {}
    for row in range(len(edges)):
        _insert(row, edges, placed, holder, row_price, column_price)
    return placed


def _insert(
    new: int,
    edges: Sequence[Mapping[int, int]],
    placed: list[int],
    holder: dict[int, int],
    row_price: list[int],
    column_price: dict[int, int],
) -> None:
    """Adds one row and moves others along the path that costs least, keeping the assignment the heaviest.

    Prices prove it: price(row) + price(column) >= weight everywhere, equal on assigned edges, and whoever is alone has
    price zero. Staying alone is a private place of weight zero, at a cost of the row's whole price.
    """
    row_price[new] = max((weight - column_price.get(c, 0) for c, weight in edges[new].items()), default=0)
    if row_price[new] <= 0:
        row_price[new] = 0
        return
    row_distance = {new: 0}
    column_distance: dict[int, int] = {}
    came_from: dict[int, int] = {}
    frontier: list[tuple[int, bool, int]] = []  # cost, whether the place is held, column: at equal cost free ones first
    alone, alone_cost = new, row_price[new]

    row, distance = new, 0
    while True:
        for column, weight in edges[row].items():
            cost = distance + row_price[row] + column_price.get(column, 0) - weight
            if cost < alone_cost and cost < column_distance.get(column, alone_cost):
                column_distance[column] = cost
                came_from[column] = row
                heappush(frontier, (cost, column in holder, column))
        while frontier and frontier[0][0] > column_distance[frontier[0][2]]:
            heappop(frontier)  # an older, dearer way to a column that has a cheaper one by now
        if not frontier or frontier[0][0] >= alone_cost:
            goal, length = NOWHERE, alone_cost
            break
        distance, held, column = heappop(frontier)
        if not held:
            goal, length = column, distance
            break
        row = holder[column]
        row_distance[row] = distance
        if distance + row_price[row] < alone_cost:
            alone, alone_cost = row, distance + row_price[row]

    for reached, cost in row_distance.items():
        column = placed[reached]
        row_price[reached] -= length - cost
        if column != NOWHERE:
            column_price[column] = column_price.get(column, 0) + length - cost
    _shift(goal, alone, new, placed, holder, came_from)


def _shift(
    goal: int, alone: int, new: int, placed: list[int], holder: dict[int, int], came_from: Mapping[int, int]
) -> None:
    """Moves every row on the path one place on: the last to the free goal or to nowhere, the new one to the first."""
    row, column = (alone, NOWHERE) if goal == NOWHERE else (came_from[goal], goal)
    while True:
        freed, placed[row] = placed[row], column
        if column != NOWHERE:
            holder[column] = row
        if row == new:
            return
        row, column = came_from[freed], freed
