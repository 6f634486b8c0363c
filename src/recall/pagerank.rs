//! Personalised PageRank on a weighted undirected graph.
//!
//! In: edges, seeds, a damping. Out: one rank a node; all ranks together are 1.
//!
//! ```text
//! a walker stands on a seed;   with damping d it follows an edge, chosen by weight,
//!                              with 1 - d, or where no edge leaves, it starts again on a seed
//! ```
//!
//! Equal to `networkx.pagerank(G, alpha=d, personalization=seeds, dangling=seeds, tol=1e-12, max_iter=10000)` within 1e-6
//! a node. As there, the row of a node sums its edges, and a self-loop counts once. Never: I/O.

/// Damping when the caller names none (DESIGN section 5): half of the walk stays with the seeds, so that what is
/// two steps away still counts and what is ten steps away does not.
pub const DAMPING_DEFAULT: f64 = 0.5;

/// Largest damping: near 1 the walk forgets its seeds and takes ever longer to settle.
pub const DAMPING_MAX: f64 = 0.99;

/// All ranks together are at most this far from where they settle. networkx stops at 1e-12 a node and the same error, or
/// less, is left there; 1e-9 is a thousandth of what is promised.
const ERROR_MAX: f64 = 1e-9;

/// A weighted undirected graph: for each node its neighbours, in one array.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// Where each node's neighbours begin; one more than there are nodes.
    starts: Vec<usize>,
    neighbours: Vec<u32>,
    weights: Vec<f64>,
    /// One over the sum of a node's weights; 0 for a node that no edge leaves.
    shares: Vec<f64>,
}

/// An edge between two nodes, by their numbers; both ends may be the same node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// One end.
    pub one: u32,
    /// The other end.
    pub other: u32,
    /// Above 0.
    pub weight: f64,
}

/// Why there is no rank.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum RankError {
    /// Damping outside of 0–[`DAMPING_MAX`].
    #[error(
        "a damping of {0} is outside of 0 to {DAMPING_MAX}; 0.5 is usual, larger values walk further from the query"
    )]
    Damping(f64),
    /// No seed of a weight above 0 on a node of the graph.
    #[error("no seed has a weight above 0, so there is nowhere to start from")]
    NoSeed,
}

impl Graph {
    /// A graph of `nodes` nodes. Edges of a weight that is not above 0 and finite, and edges to nodes that are not there, are
    /// left out; several edges between the same two nodes add up.
    #[must_use]
    pub fn new(nodes: usize, edges: &[Edge]) -> Self {
        let is_usable = |edge: &&Edge| {
            let is_there = |node: u32| (node as usize) < nodes;
            edge.weight > 0.0 && edge.weight.is_finite() && is_there(edge.one) && is_there(edge.other)
        };
        let mut starts = vec![0_usize; nodes + 1];
        for edge in edges.iter().filter(is_usable) {
            starts[edge.one as usize + 1] += 1;
            starts[edge.other as usize + 1] += usize::from(edge.one != edge.other);
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut graph = Self {
            neighbours: vec![0; starts[nodes]],
            weights: vec![0.0; starts[nodes]],
            shares: vec![0.0; nodes],
            starts,
        };
        for edge in edges.iter().filter(is_usable) {
            graph.put(&mut next, edge.one, edge.other, edge.weight);
            if edge.one != edge.other {
                graph.put(&mut next, edge.other, edge.one, edge.weight);
            }
        }
        for share in &mut graph.shares {
            *share = if *share > 0.0 { share.recip() } else { 0.0 };
        }
        graph
    }

    fn put(&mut self, next: &mut [usize], from: u32, to: u32, weight: f64) {
        let place = &mut next[from as usize];
        self.neighbours[*place] = to;
        self.weights[*place] = weight;
        self.shares[from as usize] += weight;
        *place += 1;
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shares.len()
    }

    /// What flows into each node from its neighbours, each of which gives away all it has.
    fn flow(&self, from: &[f64], into: &mut [f64]) {
        for (node, received) in into.iter_mut().enumerate() {
            let row = self.starts[node]..self.starts[node + 1];
            let edges = self.neighbours[row.clone()].iter().zip(&self.weights[row]);
            *received = edges.map(|(neighbour, weight)| from[*neighbour as usize] * weight).sum();
        }
    }
}

/// The rank of each node, for seeds given as (node, weight); the weights need not add up to 1. Seeds of a weight that is not
/// above 0 and finite, and seeds on nodes that are not there, are left out.
///
/// # Errors
/// [`RankError::Damping`] and [`RankError::NoSeed`].
pub fn rank(graph: &Graph, seeds: &[(u32, f64)], damping: f64) -> Result<Vec<f64>, RankError> {
    if !(0.0..=DAMPING_MAX).contains(&damping) {
        return Err(RankError::Damping(damping));
    }
    let start = normalised(graph.nodes(), seeds).ok_or(RankError::NoSeed)?;
    let mut ranks = start.clone();
    let mut giving = vec![0.0; graph.nodes()];
    let mut received = vec![0.0; graph.nodes()];
    for _ in 0..steps(damping) {
        let mut stranded = 0.0;
        for ((gift, rank), share) in giving.iter_mut().zip(&ranks).zip(&graph.shares) {
            *gift = rank * share;
            stranded += if *share > 0.0 { 0.0 } else { *rank };
        }
        graph.flow(&giving, &mut received);
        let restart = damping * stranded + (1.0 - damping);
        let mut change = 0.0;
        for ((rank, received), start) in ranks.iter_mut().zip(&received).zip(&start) {
            let new = damping * received + restart * start;
            change += (new - *rank).abs();
            *rank = new;
        }
        // Each further step changes at most `damping` times as much as the one before it.
        if change * damping <= ERROR_MAX * (1.0 - damping) {
            break;
        }
    }
    Ok(ranks)
}

/// Steps after which the error is below [`ERROR_MAX`] whatever the graph: it is at most 2 at first, and each step leaves
/// `damping` of it.
fn steps(damping: f64) -> usize {
    let mut error = 2.0;
    let mut steps = 1;
    while error > ERROR_MAX {
        error *= damping;
        steps += 1;
    }
    steps
}

fn normalised(nodes: usize, seeds: &[(u32, f64)]) -> Option<Vec<f64>> {
    let mut start = vec![0.0; nodes];
    for (node, weight) in seeds.iter().filter(|(_, weight)| *weight > 0.0 && weight.is_finite()) {
        if let Some(place) = start.get_mut(*node as usize) {
            *place += weight;
        }
    }
    let sum: f64 = start.iter().sum();
    if sum <= 0.0 || !sum.is_finite() {
        return None;
    }
    start.iter_mut().for_each(|weight| *weight /= sum);
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_of_three_has_the_ranks_worked_out_by_hand() {
        // x0 = 1/2 + x1/4, x1 = (x0 + x2)/2, x2 = x1/4 give 7/12, 4/12, 1/12.
        let graph = Graph::new(3, &[edge(0, 1, 1.0), edge(1, 2, 1.0)]);

        let ranks = rank(&graph, &[(0, 1.0)], 0.5).unwrap();

        assert_close(&ranks, &[7.0 / 12.0, 4.0 / 12.0, 1.0 / 12.0]);
    }

    #[test]
    fn a_self_loop_counts_once() {
        // x0 = 1/2 + x0/4 + x1/2 (half of node 0 stays), x1 = x0/4 give 8/10, 2/10.
        let graph = Graph::new(2, &[edge(0, 0, 1.0), edge(0, 1, 1.0)]);

        let ranks = rank(&graph, &[(0, 1.0)], 0.5).unwrap();

        assert_close(&ranks, &[0.8, 0.2]);
    }

    #[test]
    fn what_is_stranded_goes_back_to_the_seeds_and_the_unreached_has_nothing() {
        let graph = Graph::new(4, &[edge(2, 3, 1.0)]);

        let ranks = rank(&graph, &[(0, 3.0), (1, 1.0)], 0.85).unwrap();

        assert_close(&ranks, &[0.75, 0.25, 0.0, 0.0]);
    }

    #[test]
    fn bad_input_is_refused_or_left_out() {
        let graph = Graph::new(2, &[edge(0, 1, 1.0), edge(0, 7, 1.0), edge(0, 1, f64::NAN), edge(0, 1, -1.0)]);

        assert_eq!(graph, Graph::new(2, &[edge(0, 1, 1.0)]));
        let no_seeds = [&[] as &[(u32, f64)], &[(0, 0.0)], &[(9, 1.0)], &[(0, f64::INFINITY)], &[(1, f64::NAN)]];
        for seeds in no_seeds {
            assert_eq!(rank(&graph, seeds, 0.5), Err(RankError::NoSeed), "{seeds:?}");
        }
        for damping in [-0.1, 1.0, f64::NAN] {
            assert!(matches!(rank(&graph, &[(0, 1.0)], damping), Err(RankError::Damping(_))), "{damping}");
        }
        assert_eq!(rank(&Graph::new(0, &[]), &[(0, 1.0)], 0.5), Err(RankError::NoSeed));
    }

    proptest! {
        #[test]
        fn ranks_are_shares_of_one_and_the_order_of_edges_does_not_matter(
            edges in prop::collection::vec((0_u32..12, 0_u32..12, 0.1_f64..5.0), 0..40),
            seed in 0_u32..12,
            damping in 0.0..DAMPING_MAX,
        ) {
            let mut edges: Vec<Edge> = edges.into_iter().map(|(one, other, weight)| edge(one, other, weight)).collect();
            let ranks = rank(&Graph::new(12, &edges), &[(seed, 2.5)], damping).unwrap();
            edges.reverse();
            let reversed = rank(&Graph::new(12, &edges), &[(seed, 2.5)], damping).unwrap();

            prop_assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(ranks.iter().all(|rank| *rank >= 0.0));
            prop_assert!(ranks.iter().zip(&reversed).all(|(one, other)| (one - other).abs() < 1e-9));
        }
    }

    fn edge(one: u32, other: u32, weight: f64) -> Edge {
        Edge { one, other, weight }
    }

    fn assert_close(ranks: &[f64], expected: &[f64]) {
        assert_eq!(ranks.len(), expected.len());
        let is_close = ranks.iter().zip(expected).all(|(rank, expected)| (rank - expected).abs() < 1e-8);
        assert!(is_close, "{ranks:?} instead of {expected:?}");
    }
}
