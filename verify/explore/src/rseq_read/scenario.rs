//! Who does what: which tool, and how many of each.

use super::world::Plan;
use super::{count, exact, fold, grow, guard, lock, read, reference};

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// `Snapshot`: the whole read is one section.
    Snapshot,
    /// A read that falls back to a guard after some aborts, or that has nothing else.
    Guard,
    /// Restartable increments, with nothing but one instruction that writes.
    Counts,
    /// The same with a load and a store.
    TwoStepCounts,
    /// Counts that begin as shared words and become words of each CPU, under an SRCU scan.
    Growing,
    /// `LocalGlobalLock`.
    LocalGlobal,
    /// `ExactCounter`: its read-out stops those who count.
    ExactCounter,
    /// `ExactCounter` on words that are folded into one.
    FoldingCounter,
    /// `LocalGlobalLock` on words that are folded into one.
    FoldingLock,
    /// `BigRef`.
    BigRef,
}

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// What is explored.
    pub subject: Subject,
    /// Threads that read, count or hold references: two at most. They are preempted and migrate.
    pub readers: u8,
    /// What each of them does, so many times.
    pub rounds: u8,
    /// The CPUs on which they do it: one or two.
    pub cpus: u8,
    /// Threads that publish, grow, stop others or kill, each on a CPU of its own: two at most.
    pub writers: u8,
    /// How many times each of them does it.
    pub updates: u8,
    /// Threads that do what readers do, but have no rseq, each on a CPU of its own.
    pub strangers: u8,
    /// Page faults in touches of objects, at most.
    pub faults: u8,
    /// Whether readers stay where they are, each on a CPU of its own, and are not preempted.
    pub readers_stay: bool,
    /// Whether the one writer there is shares the CPUs with the one reader.
    pub writer_moves: bool,
    /// Whether the first reader has looked up its index before a grace period that has ended.
    pub straggles: bool,
    /// After how many aborts a read falls back.
    pub aborts_max: u8,
    /// Without restartable sequences and membarrier.
    pub is_portable: bool,
}

impl Scenario {
    pub(super) fn plan(&self, mutant: Option<super::Mutant>) -> Plan {
        let plan = match self.subject {
            Subject::Snapshot => read::plan(self, mutant),
            Subject::Guard => guard::plan(self, mutant),
            Subject::Counts | Subject::TwoStepCounts => count::plan(self, mutant),
            Subject::Growing => grow::plan(self, mutant),
            Subject::LocalGlobal => lock::plan(self, mutant),
            Subject::ExactCounter => exact::plan(self, mutant),
            Subject::FoldingCounter | Subject::FoldingLock => fold::plan(self, mutant),
            Subject::BigRef => reference::plan(self, mutant),
        };
        Plan { mutant, shared_cpus: usize::from(self.cpus), faults: self.faults, ..plan }
    }
}

/// One reader against one update, on two CPUs and a third.
const BASE: Scenario = Scenario {
    name: "",
    about: "",
    subject: Subject::Snapshot,
    readers: 1,
    rounds: 1,
    cpus: 2,
    writers: 1,
    updates: 1,
    strangers: 0,
    faults: 0,
    readers_stay: false,
    writer_moves: false,
    straggles: false,
    aborts_max: 1,
    is_portable: false,
};

const fn named_as(name: &'static str, subject: Subject, about: &'static str) -> Scenario {
    Scenario { name, subject, about, ..BASE }
}

/// All scenarios.
pub fn scenarios() -> Vec<Scenario> {
    [reads(), guards(), counts(), locks(), tools(), folding()].concat()
}

fn reads() -> Vec<Scenario> {
    let snapshot = named_as("snapshot", Subject::Snapshot, "a read against an update");
    vec![
        snapshot.clone(),
        Scenario {
            name: "snapshot-two-updates",
            about: "two reads against two updates",
            rounds: 2,
            updates: 2,
            ..snapshot.clone()
        },
        Scenario {
            name: "snapshot-one-cpu",
            about: "reader and writer share a CPU: the barrier interrupts nobody",
            cpus: 1,
            writer_moves: true,
            ..snapshot.clone()
        },
        Scenario {
            name: "snapshot-crowded",
            about: "two readers on one CPU",
            readers: 2,
            cpus: 1,
            ..snapshot.clone()
        },
        Scenario {
            name: "snapshot-two-writers",
            about: "two writers, each of which frees what it has replaced",
            writers: 2,
            ..snapshot.clone()
        },
        Scenario {
            name: "snapshot-page-fault",
            about: "a read that runs into a page fault; what is freed stays mapped",
            faults: 1,
            ..snapshot
        },
    ]
}

fn guards() -> Vec<Scenario> {
    let guard = named_as("guard", Subject::Guard, "a read that falls back after one abort");
    vec![
        guard.clone(),
        Scenario {
            name: "guard-after-two",
            about: "a read that falls back after two aborts",
            aborts_max: 2,
            ..guard.clone()
        },
        Scenario {
            name: "guard-two-updates",
            about: "a guard may straggle past a grace period",
            updates: 2,
            ..guard.clone()
        },
        Scenario {
            name: "guard-two-reads",
            about: "two reads in a row, which may be of different kinds and in different indexes",
            rounds: 2,
            updates: 2,
            cpus: 1,
            ..guard.clone()
        },
        Scenario {
            name: "guard-two-readers",
            about: "two readers, on one CPU",
            readers: 2,
            cpus: 1,
            ..guard.clone()
        },
        Scenario {
            name: "guard-portable",
            about: "no sections and no membarrier",
            is_portable: true,
            updates: 2,
            ..guard.clone()
        },
        Scenario {
            name: "guard-portable-two-readers",
            about: "the same with two readers, on one CPU",
            readers: 2,
            cpus: 1,
            is_portable: true,
            ..guard
        },
    ]
}

fn counts() -> Vec<Scenario> {
    let counts = Scenario {
        readers: 2,
        rounds: 2,
        writers: 0,
        ..named_as("counts", Subject::Counts, "two threads, two CPUs, four increments")
    };
    let growing = named_as("growing", Subject::Growing, "a section, while the words are installed");
    vec![
        counts.clone(),
        Scenario {
            name: "counts-in-two-steps",
            about: "increments of a load and a store",
            subject: Subject::TwoStepCounts,
            ..counts.clone()
        },
        Scenario {
            name: "counts-strangers",
            about: "a thread, and two without rseq, who add to a shared word",
            readers: 1,
            strangers: 2,
            rounds: 1,
            ..counts
        },
        growing.clone(),
        Scenario {
            name: "growing-small",
            about: "a section on one CPU, while the words are installed",
            cpus: 1,
            ..growing.clone()
        },
        Scenario {
            name: "growing-two-sections",
            about: "two sections, before and after",
            rounds: 2,
            cpus: 1,
            ..growing.clone()
        },
        Scenario {
            name: "growing-straggler",
            about: "a straggler, while the words are installed",
            straggles: true,
            cpus: 1,
            ..growing.clone()
        },
        Scenario {
            name: "growing-two-readers",
            about: "two readers, each on its CPU",
            readers: 2,
            readers_stay: true,
            ..growing.clone()
        },
        Scenario {
            name: "growing-portable",
            about: "no membarrier: light fences are full ones",
            is_portable: true,
            ..growing
        },
    ]
}

fn locks() -> Vec<Scenario> {
    let lock = named_as("local-global", Subject::LocalGlobal, "a reader against a writer");
    vec![
        lock.clone(),
        Scenario {
            name: "local-global-again",
            about: "a reader that comes twice",
            rounds: 2,
            ..lock.clone()
        },
        Scenario {
            name: "local-global-two-readers",
            about: "two readers on one CPU",
            readers: 2,
            cpus: 1,
            ..lock.clone()
        },
        Scenario {
            name: "local-global-two-writers",
            about: "two writers, who exclude each other",
            writers: 2,
            cpus: 1,
            ..lock.clone()
        },
        Scenario {
            name: "local-global-one-cpu",
            about: "reader and writer share a CPU",
            cpus: 1,
            writer_moves: true,
            updates: 2,
            ..lock.clone()
        },
        Scenario {
            name: "local-global-portable",
            about: "no sections and no membarrier: a mark may be taken back",
            rounds: 2,
            cpus: 1,
            is_portable: true,
            ..lock.clone()
        },
        Scenario {
            name: "local-global-portable-two-readers",
            about: "the same with two readers",
            readers: 2,
            cpus: 1,
            is_portable: true,
            ..lock.clone()
        },
        Scenario {
            name: "local-global-stranger",
            about: "a reader, and one without rseq, who marks a shared word first",
            cpus: 1,
            strangers: 1,
            ..lock
        },
    ]
}

fn tools() -> Vec<Scenario> {
    let exact = Scenario {
        rounds: 2,
        ..named_as("exact", Subject::ExactCounter, "two increments, and a read-out")
    };
    let big = named_as("big-ref", Subject::BigRef, "a holder, while the reference is killed");
    vec![
        exact.clone(),
        Scenario {
            name: "exact-two-threads",
            about: "two threads on two CPUs",
            readers: 2,
            rounds: 1,
            ..exact.clone()
        },
        Scenario {
            name: "exact-one-cpu",
            about: "who counts and who reads out share a CPU",
            cpus: 1,
            writer_moves: true,
            updates: 2,
            ..exact
        },
        big.clone(),
        Scenario {
            name: "big-ref-stranger",
            about: "a holder, and one without rseq, who counts on the word",
            cpus: 1,
            strangers: 1,
            ..big.clone()
        },
        Scenario {
            name: "big-ref-stranger-alone",
            about: "a holder without rseq",
            readers: 0,
            cpus: 1,
            strangers: 1,
            ..big.clone()
        },
        Scenario {
            name: "big-ref-two-holders",
            about: "two holders: whoever puts last releases",
            readers: 2,
            ..big.clone()
        },
        Scenario {
            name: "big-ref-two-who-stay",
            about: "two holders, each on its CPU",
            readers: 2,
            readers_stay: true,
            ..big.clone()
        },
        Scenario {
            name: "big-ref-one-cpu",
            about: "holder and killer share a CPU",
            cpus: 1,
            writer_moves: true,
            rounds: 2,
            ..big
        },
    ]
}

fn folding() -> Vec<Scenario> {
    let count = Scenario {
        rounds: 2,
        ..named_as("fold", Subject::FoldingCounter, "two increments, and a sum")
    };
    let lock = named_as("fold-lock", Subject::FoldingLock, "a reader against a writer");
    vec![
        count.clone(),
        Scenario {
            name: "fold-twice",
            about: "and two sums",
            updates: 2,
            cpus: 1,
            ..count.clone()
        },
        Scenario {
            name: "fold-two-threads",
            about: "two threads on two CPUs",
            readers: 2,
            rounds: 1,
            ..count.clone()
        },
        Scenario {
            name: "fold-portable",
            about: "two sums, without sections",
            updates: 2,
            is_portable: true,
            ..count.clone()
        },
        lock.clone(),
        Scenario {
            name: "fold-lock-portable",
            about: "without sections",
            rounds: 2,
            cpus: 1,
            is_portable: true,
            ..lock.clone()
        },
        Scenario {
            name: "fold-lock-again",
            about: "a reader that comes twice, and a writer that comes twice",
            rounds: 2,
            updates: 2,
            cpus: 1,
            ..lock.clone()
        },
        Scenario {
            name: "fold-lock-two-readers",
            about: "two readers, on one CPU",
            readers: 2,
            cpus: 1,
            ..lock.clone()
        },
        Scenario {
            name: "fold-lock-one-cpu",
            about: "reader and writer share a CPU",
            cpus: 1,
            writer_moves: true,
            updates: 2,
            ..lock
        },
    ]
}

/// The scenario of this name.
pub fn named(name: &str) -> Option<Scenario> {
    scenarios().into_iter().find(|scenario| scenario.name == name)
}
