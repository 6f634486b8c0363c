#!/usr/bin/env python3
"""Prints graphs with networkx's personalised PageRank of them, one JSON object a line, for tests/it/pagerank.rs.

A line: {"name", "nodes": N, "edges": [[u, v, weight], ...], "seeds": [[node, weight], ...], "damping", "ranks": [N numbers]}.
The named graphs are those networkx brings along; the others are made here, from a fixed seed.
"""

import json
import random

import networkx as nx

NAMED = [
    nx.karate_club_graph,
    nx.florentine_families_graph,
    nx.les_miserables_graph,
    nx.davis_southern_women_graph,
    nx.krackhardt_kite_graph,
    nx.petersen_graph,
    nx.tutte_graph,
    nx.frucht_graph,
    nx.house_x_graph,
]
DAMPINGS = [0.1, 0.5, 0.85]
RANDOM_GRAPHS = 200


def random_graph(generator, number):
    """A weighted graph; every kind of oddity comes round: nodes without edges, self-loops, two components."""
    nodes = generator.randint(2, 60)
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes))
    halves = [range(nodes // 2), range(nodes // 2, nodes)]
    for _ in range(generator.randint(0, 4 * nodes)):
        span = list(generator.choice(halves)) if number % 3 == 0 else list(range(nodes))
        if not span:
            continue
        one, other = generator.choice(span), generator.choice(span)
        if one == other and number % 2 == 0:
            continue
        graph.add_edge(one, other, weight=generator.choice([1.0, generator.uniform(0.01, 20.0)]))
    return graph


def line(name, graph, generator, damping):
    """One comparison: a graph, seeds on a few of its nodes, and what networkx says."""
    places = {node: place for place, node in enumerate(graph)}
    nodes = list(graph)
    seeds = {node: generator.uniform(0.1, 5.0) for node in generator.sample(nodes, min(len(nodes), generator.randint(1, 5)))}
    ranks = nx.pagerank(graph, alpha=damping, personalization=seeds, dangling=seeds, tol=1e-12, max_iter=10000)
    return {
        "name": name,
        "nodes": len(nodes),
        "edges": [[places[u], places[v], data.get("weight", 1.0)] for u, v, data in graph.edges(data=True)],
        "seeds": [[places[node], weight] for node, weight in seeds.items()],
        "damping": damping,
        "ranks": [ranks[node] for node in nodes],
    }


def main():
    generator = random.Random(20260501)
    graphs = [(make.__name__, make()) for make in NAMED]
    graphs += [(f"random {number}", random_graph(generator, number)) for number in range(RANDOM_GRAPHS)]
    for name, graph in graphs:
        for damping in DAMPINGS:
            print(json.dumps(line(name, graph, generator, damping)))


main()
