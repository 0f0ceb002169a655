//! Who does what: which tool, and how many of each.

use serde::Deserialize;

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
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

/// One reader against one update, on two CPUs and a third.
impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: "",
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
        }
    }
}
