//! The combining tree: which CPUs have not yet passed a quiescent state, in masks of a word each.
//!
//! A leaf has a bit for each of its CPUs, an inner node one for each of its children. The CPU that
//! clears the last bit of a node continues with the parent, so that a lock is wanted by as many as
//! the node has children, however many CPUs there are. Nodes are numbered from the root down.

use core::ops::Range;

use grace::{Cookie, Sequence};

use crate::engine::store::Store;

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
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
pub(crate) struct Nodes<A: Store> {
    nodes: A::Of<Node>,
    first_leaf: usize,
    leaf_fanout: usize,
}

/// The lowest `count` bits; all, if there are not so many.
const fn ones(count: usize) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// How many levels there are at most: of two children to a node, over as many CPUs as can be.
const LEVELS: usize = usize::BITS as usize + 1;

/// Nodes on each level, from the leaves up to the root; and how many levels there are.
fn widths(cpus: usize, leaf_fanout: usize, fanout: usize) -> ([usize; LEVELS], usize) {
    let mut widths = [0; LEVELS];
    widths[0] = cpus.div_ceil(leaf_fanout).max(1);
    let mut levels = 1;
    while widths[levels - 1] > 1 {
        widths[levels] = widths[levels - 1].div_ceil(fanout);
        levels += 1;
    }
    (widths, levels)
}

impl<A: Store> Nodes<A> {
    /// A tree over the CPUs of `store`. Fan-outs are taken as 1 to 64 for leaves, 2 to 64 above
    /// them; and greater than that if the nodes have no room otherwise.
    pub(super) fn new(store: A, leaf_fanout: u32, fanout: u32, sequence: Sequence) -> Self {
        let cpus = store.cpus();
        let mut leaf_fanout = leaf_fanout.clamp(1, 64) as usize;
        let mut fanout = fanout.clamp(2, 64) as usize;
        let (mut widths, mut levels) = self::widths(cpus, leaf_fanout, fanout);
        while widths.iter().sum::<usize>() > A::CAPACITY && (leaf_fanout, fanout) != (64, 64) {
            (leaf_fanout, fanout) = ((2 * leaf_fanout).min(64), (2 * fanout).min(64));
            (widths, levels) = self::widths(cpus, leaf_fanout, fanout);
        }
        let needed = Cookie::done_at(sequence);
        let empty = Node { holdouts: 0, children: 0, parent: None, sequence, needed };
        let mut nodes = store.of(widths.iter().sum(), empty);
        let (mut first, mut above) = (0, 0);
        for height in (0..levels).rev() {
            let (below, each) = match height {
                0 => (cpus, leaf_fanout),
                _ => (widths[height - 1], fanout),
            };
            let level = nodes.iter_mut().skip(first).take(widths[height]);
            for (index, node) in level.enumerate() {
                node.children = ones((below - index * each).min(each));
                if height + 1 < levels {
                    node.parent = Some((above + index / fanout, 1 << (index % fanout)));
                }
            }
            above = first;
            first += widths[height];
        }
        Self { first_leaf: above, leaf_fanout, nodes }
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
    pub(super) fn all(&self) -> Range<usize> {
        0..self.nodes.len()
    }

    /// The leaves.
    pub(super) fn leaves(&self) -> Range<usize> {
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
    pub(crate) fn is_holdout(&self, cpu: usize) -> bool {
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
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::engine::store::{Fixed, Heap};

    /// The widths of the levels, from the root down, as the nodes' parents tell them.
    fn widths(nodes: &Nodes<Heap>) -> Vec<usize> {
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
        let tree = |cpus, leaf, inner| Nodes::new(Heap(cpus), leaf, inner, Sequence::after(0));
        assert_eq!(widths(&tree(1, 16, 64)), [1]);
        assert_eq!(widths(&tree(16, 16, 64)), [1]);
        assert_eq!(widths(&tree(17, 16, 64)), [1, 2]);
        assert_eq!(widths(&tree(4_096, 16, 64)), [1, 4, 256]);
        assert_eq!(widths(&tree(70_000, 16, 64)), [1, 2, 69, 4_375]);
        assert_eq!(widths(&tree(5, 1, 2)), [1, 2, 3, 5]);
    }

    #[test]
    fn a_tree_whose_nodes_have_no_room_has_wider_ones() {
        let tree = |cpus, leaf, inner| {
            Nodes::<Fixed<5>>::new(Fixed(cpus), leaf, inner, Sequence::after(0)).nodes.len()
        };
        assert_eq!(tree(5, 1, 2), 4, "three leaves of two, and a root, in place of eleven");
        assert_eq!(tree(5, 16, 64), 1);
    }

    #[test]
    fn every_node_is_its_parents_child_by_a_bit_of_its_own() {
        for cpus in [0, 1, 15, 16, 100, 1_023, 1_024, 1_025, 5_000] {
            let nodes = Nodes::new(Heap(cpus), 16, 64, Sequence::after(0));
            let mut seen = vec![0_u64; nodes.nodes.len()];
            for cpu in 0..cpus {
                let (leaf, bit) = nodes.leaf_of(cpu);
                assert!(nodes.leaves().contains(&leaf) && seen[leaf] & bit == 0);
                assert_eq!(nodes.first_cpu(leaf), cpu / 16 * 16);
                seen[leaf] |= bit;
            }
            for node in nodes.nodes.iter() {
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
