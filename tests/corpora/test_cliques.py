from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from wingspan.corpora.fragments import maximal_cliques


def by_definition(nodes: int, links: set[tuple[int, int]]) -> set[tuple[int, ...]]:
    """All sets in which everyone is linked, without those inside of another one."""
    linked = [
        set(group)
        for size in range(1, nodes + 1)
        for group in combinations(range(nodes), size)
        if all(pair in links for pair in combinations(group, 2))
    ]
    return {tuple(sorted(group)) for group in linked if not any(group < other for other in linked)}


@st.composite
def graphs(draw):
    nodes = draw(st.integers(1, 8))
    pairs = list(combinations(range(nodes), 2))
    return nodes, set(draw(st.lists(st.sampled_from(pairs), unique=True))) if pairs else set()


@given(given_graph=graphs())
def test_they_are_what_the_definition_says(given_graph):
    nodes, links = given_graph
    found, complete = maximal_cliques(nodes, links)
    assert complete
    assert len(found) == len(set(found))
    assert set(found) == by_definition(nodes, links)


def test_no_node_no_clique():
    assert maximal_cliques(0, []) == ([], True)


def test_the_most_cliques_a_graph_can_have_are_cut_off():
    nodes = 60  # all linked but those of one triple: 3^20 cliques
    links = {(i, j) for i, j in combinations(range(nodes), 2) if i // 3 != j // 3}
    found, complete = maximal_cliques(nodes, links)
    assert not complete
    assert 0 < len(found) < 100
    for clique in found:  # what was found before the end is right
        assert sorted(node // 3 for node in clique) == list(range(20))


def test_more_effort_finds_more():
    nodes = 12  # 3^4 cliques
    links = {(i, j) for i, j in combinations(range(nodes), 2) if i // 3 != j // 3}
    few, ended = maximal_cliques(nodes, links, 100)
    many, complete = maximal_cliques(nodes, links, 10_000)
    assert (ended, complete) == (False, True)
    assert len(few) < len(many) == 81
    assert set(few) < set(many)
