//! The combining tree: which CPUs have not yet passed a quiescent state, in masks of a word each.
//!
//! A leaf has a bit for each of its CPUs, an inner node one for each of its children. The CPU that
//! clears the last bit of a node continues with the parent, so that a lock is wanted by as many as
//! the node has children, however many CPUs there are. Nodes are numbered from the root down.

use std::ops::Range;

use grace::{Cookie, Sequence};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// Children that the grace period in progress waits for.
    pub(super) holdouts: u64,
    /// All children.
    children: u64,
    /// The node above, and the own bit there.
    pub(super) parent: Option<(usize, u64)>,
    /// The grace period, as those below this node know it.
    pub(super) sequence: Sequence,
    /// The furthest grace period that was asked for through this node.
    pub(super) needed: Cookie,
}

/// The tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    first_leaf: usize,
    leaf_fanout: usize,
}

/// The lowest `count` bits; all, if there are not so many.
const fn ones(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

impl Nodes {
    /// A tree over `cpus` CPUs. Fan-outs are taken as 1 to 64 for leaves, 2 to 64 above them.
    pub(super) fn new(cpus: usize, leaf_fanout: u32, fanout: u32, sequence: Sequence) -> Self {
        let leaf_fanout = leaf_fanout.clamp(1, 64) as usize;
        let fanout = fanout.clamp(2, 64) as usize;
        // Nodes on each level, from the leaves up to the root.
        let mut widths = vec![cpus.div_ceil(leaf_fanout).max(1)];
        let mut width = widths[0];
        while width > 1 {
            width = width.div_ceil(fanout);
            widths.push(width);
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(widths.iter().sum());
        let mut above = None;
        for (height, &width) in widths.iter().enumerate().rev() {
            let (below, each) = match height {
                0 => (cpus, leaf_fanout),
                _ => (widths[height - 1], fanout),
            };
            let first = nodes.len();
            nodes.extend((0..width).map(|index| Node {
                holdouts: 0,
                children: ones((below - index * each).min(each)),
                parent: above.map(|above: usize| (above + index / fanout, 1 << (index % fanout))),
                sequence,
                needed: Cookie::done_at(sequence),
            }));
            above = Some(first);
        }
        Self { first_leaf: above.unwrap_or(0), leaf_fanout, nodes }
    }

    /// The node at `index`, if there is one.
    pub(super) fn get(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }

    /// The same, to change it.
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Node> {
        self.nodes.get_mut(index)
    }

    /// All nodes, from the root down.
    pub(super) const fn all(&self) -> Range<usize> {
        0..self.nodes.len()
    }

    /// The leaves.
    pub(super) const fn leaves(&self) -> Range<usize> {
        self.first_leaf..self.nodes.len()
    }

    /// The leaf of `cpu`, and its bit there.
    pub(super) const fn leaf_of(&self, cpu: usize) -> (usize, u64) {
        (self.first_leaf + cpu / self.leaf_fanout, 1 << (cpu % self.leaf_fanout))
    }

    /// The CPU that the lowest bit of `leaf` stands for.
    pub(super) const fn first_cpu(&self, leaf: usize) -> usize {
        leaf.saturating_sub(self.first_leaf) * self.leaf_fanout
    }

    /// Whether the grace period in progress waits for `cpu`.
    pub(super) fn is_holdout(&self, cpu: usize) -> bool {
        let (leaf, bit) = self.leaf_of(cpu);
        self.get(leaf).is_some_and(|node| node.holdouts & bit != 0)
    }

    /// A grace period begins, or has ended: one node is notified. Begun, it waits for all its
    /// children.
    pub(super) fn set_sequence(&mut self, index: usize, sequence: Sequence) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.sequence = sequence;
            node.holdouts = if sequence.in_progress() { node.children } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The widths of the levels, from the root down, as the nodes' parents tell them.
    fn widths(nodes: &Nodes) -> Vec<usize> {
        let mut depths = vec![0];
        for node in &nodes.nodes[1..] {
            depths.push(depths[node.parent.unwrap().0] + 1);
        }
        (0..=*depths.last().unwrap())
            .map(|depth| depths.iter().filter(|&&one| one == depth).count())
            .collect()
    }

    #[test]
    fn the_tree_has_the_levels_that_its_fanouts_ask_for() {
        let tree = |cpus, leaf, inner| Nodes::new(cpus, leaf, inner, Sequence::after(0));
        assert_eq!(widths(&tree(1, 16, 64)), [1]);
        assert_eq!(widths(&tree(16, 16, 64)), [1]);
        assert_eq!(widths(&tree(17, 16, 64)), [1, 2]);
        assert_eq!(widths(&tree(4_096, 16, 64)), [1, 4, 256]);
        assert_eq!(widths(&tree(70_000, 16, 64)), [1, 2, 69, 4_375]);
        assert_eq!(widths(&tree(5, 1, 2)), [1, 2, 3, 5]);
    }

    #[test]
    fn every_node_is_its_parents_child_by_a_bit_of_its_own() {
        for cpus in [0, 1, 15, 16, 100, 1_023, 1_024, 1_025, 5_000] {
            let nodes = Nodes::new(cpus, 16, 64, Sequence::after(0));
            let mut seen = vec![0_u64; nodes.nodes.len()];
            for cpu in 0..cpus {
                let (leaf, bit) = nodes.leaf_of(cpu);
                assert!(nodes.leaves().contains(&leaf) && seen[leaf] & bit == 0);
                assert_eq!(nodes.first_cpu(leaf), cpu / 16 * 16);
                seen[leaf] |= bit;
            }
            for node in &nodes.nodes {
                if let Some((parent, bit)) = node.parent {
                    assert_eq!(seen[parent] & bit, 0);
                    seen[parent] |= bit;
                }
            }
            let children: Vec<_> = nodes.nodes.iter().map(|node| node.children).collect();
            assert_eq!(seen, children, "{cpus} CPUs");
        }
    }
}
