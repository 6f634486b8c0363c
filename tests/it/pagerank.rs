//! Personalised PageRank equals networkx's, on graphs that networkx brings along and on random ones.
//!
//! `tests/peers/pagerank.py` makes the file (`scripts/setup.sh peers`, part of `make test`); `PERCEPT_PEER_PAGERANK` names it.

use percept::recall::pagerank;
use percept::recall::pagerank::Edge;
use percept::recall::pagerank::Graph;
use std::collections::BTreeSet;

/// How far a rank may be from networkx's.
const DIFFERENCE_MAX: f64 = 1e-6;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    nodes: usize,
    edges: Vec<(u32, u32, f64)>,
    seeds: Vec<(u32, f64)>,
    damping: f64,
    ranks: Vec<f64>,
}

impl Case {
    fn graph(&self) -> Graph {
        let edges: Vec<Edge> = self.edges.iter().map(|&(one, other, weight)| Edge { one, other, weight }).collect();
        Graph::new(self.nodes, &edges)
    }
}

#[test]
fn ranks_equal_those_of_networkx() {
    let Some(cases) = cases() else { return };
    let mut worst: f64 = 0.0;
    for case in &cases {
        let ranks = pagerank::rank(&case.graph(), &case.seeds, case.damping).unwrap();

        assert_eq!(ranks.len(), case.ranks.len(), "{}", case.name);
        for (node, (rank, wanted)) in ranks.iter().zip(&case.ranks).enumerate() {
            let difference = (rank - wanted).abs();
            assert!(
                difference <= DIFFERENCE_MAX,
                "{}, damping {}, node {node}: {rank}, not {wanted}",
                case.name,
                case.damping
            );
            worst = worst.max(difference);
        }
    }
    println!("{} comparisons, largest difference {worst:.1e}", cases.len());
}

/// What the comparison is worth depends on what is in the file.
#[test]
fn the_graphs_compared_have_every_oddity() {
    let Some(cases) = cases() else { return };
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    let dampings: BTreeSet<String> = cases.iter().map(|case| case.damping.to_string()).collect();
    let has_lonely_node = |case: &&Case| {
        let joined: BTreeSet<u32> = case.edges.iter().flat_map(|edge| [edge.0, edge.1]).collect();
        joined.len() < case.nodes
    };

    for name in ["karate_club_graph", "florentine_families_graph", "les_miserables_graph", "davis_southern_women_graph"]
    {
        assert!(names.contains(name), "{name} is not compared");
    }
    assert!(names.iter().filter(|name| name.starts_with("random")).count() >= 200);
    assert_eq!(dampings, ["0.1", "0.5", "0.85"].map(str::to_owned).into());
    assert!(cases.iter().filter(has_lonely_node).count() >= 100, "dangling nodes");
    assert!(cases.iter().filter(|case| case.edges.iter().any(|edge| edge.0 == edge.1)).count() >= 100, "self-loops");
}

fn cases() -> Option<Vec<Case>> {
    let path = std::env::var("PERCEPT_PEER_PAGERANK").unwrap_or_default();
    let Ok(lines) = std::fs::read_to_string(&path) else {
        println!(
            "SKIPPED: there is no comparison with networkx at {path:?} (PERCEPT_PEER_PAGERANK); `make test` makes it"
        );
        assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must compare with networkx");
        return None;
    };
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}
