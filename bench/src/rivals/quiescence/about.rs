//! What the designs of this library say of themselves in `rcu advise`.

use crate::rivals::{About, Family};

pub(super) const PLAIN: About = About {
    family: Family::Rcu,
    idea: "readers note that they read; what is replaced is freed after a grace period",
    reader_cost: "three plain stores to the thread's own cache line; updates pay for the fences",
    limits: "values that must not outlive their replacement; updates as frequent as reads",
};

pub(super) const HASH_MAP: About = About {
    family: Family::Rcu,
    idea: "a concurrent map: `quiescence::collections::HashMap::new()`, and \
           `map.read().get(&key)`; keys may come and go",
    reader_cost: "a section, as plain RCU has it, and a cache line of tags; values of more than a \
                  few words are in a box with their key, one more line",
    limits: "an update copies its key and allocates a box of both; values that must not outlive \
             their replacement",
};

pub(super) const QSBR: About = About {
    family: Family::Rcu,
    idea: "readers announce between operations that they hold nothing; sections cost nothing",
    reader_cost: "one load; an announcement every few operations is one load and mostly no store",
    limits: "every reading thread must announce quiescent states, and go offline before it blocks",
};

pub(super) const ARC_CELL: About = About {
    family: Family::ReferenceCount,
    idea: "an `Arc` in a cell, with the names of arc-swap; a load is protected by a hazard pointer",
    reader_cost: "two stores and two loads on the thread's own line; updates pay for the fences",
    limits: "frequent updates: each looks at the hazard pointers of all threads before it frees",
};

pub(super) const SRCU: About = About {
    family: Family::Rcu,
    idea: "a sleepable domain: sections may block or `.await`",
    reader_cost: "an addition to a word of the CPU on the way in, and another on the way out",
    limits: "sections that never sleep: those of plain RCU cost less",
};

pub(super) const COUNTER: About = About {
    family: Family::PerCpu,
    idea: "`quiescence::sync::Counter`: an addition to the CPU's own word, sums that may be fuzzy",
    reader_cost: "a load of each CPU's word, whose lines travel",
    limits: "sums of one moment; sums as frequent as additions",
};

pub(super) const EXACT: About = About {
    family: Family::PerCpu,
    idea: "`quiescence::sync::ExactCounter`: as `Counter`, and a sum is the value of one moment",
    reader_cost: "a `membarrier` and a load of each CPU's word: microseconds",
    limits: "frequent sums",
};

pub(super) const LIMIT: About = About {
    family: Family::PerCpu,
    idea: "`quiescence::sync::LimitCounter`: each CPU has a stock of what may still be taken",
    reader_cost: "a `membarrier` and a load of each CPU's word: microseconds",
    limits: "counts that stay near the limit, where all share one word; frequent reads of it",
};

pub(super) const QUEUE: About = About {
    family: Family::Rcu,
    idea: "a lock-free queue, first in, first out; its nodes are freed after a grace period",
    reader_cost: "a section and a compare-and-swap at the head, which all takers share",
    limits: "many takers at once: they try again; an allocation for each value",
};

pub(super) const STACK: About = About {
    family: Family::Rcu,
    idea: "a lock-free stack, last in, first out: a pool, where the order does not matter",
    reader_cost: "a section and a compare-and-swap at the top, which all users share",
    limits: "values that have to come out in order; many users at once: they try again",
};

pub(super) const ID_MAP: About = About {
    family: Family::Rcu,
    idea: "`quiescence::collections::IdMap`: slots by index, ids with generations",
    reader_cost: "a section, as plain RCU has it, and two dependent loads",
    limits: "values that must not outlive their removal",
};

pub(super) const SEQ_LOCK: About = About {
    family: Family::Copy,
    idea: "a sequence lock: readers copy the value, again if a writer came between",
    reader_cost: "two loads of the sequence and a copy of the value",
    limits: "values of more than a cache line or so; writers that leave readers no moment",
};

pub(super) const SNAPSHOT: About = About {
    family: Family::Copy,
    idea: "a value in a restartable section: readers copy it, and never wait",
    reader_cost: "a load of a pointer and a copy of the value, in a restartable sequence",
    limits: "values of more than a cache line or so; frequent updates: each is a `membarrier`",
};
