//! Sequence locks and latches: what is read is one value; and the lock among their writers.
//!
//! The programs are `worlds/programs/sequence.txt` and `writers.txt`.

use serde::Deserialize;

use crate::harness::{self, variant};
use crate::machine::{Given, Plan, Seat, assemble};
use crate::program;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A sequence lock: so often each of two writers writes, and each of two readers reads.
    SeqLock([u8; 2], [u8; 2]),
    /// A latch: the same.
    Latch([u8; 2], [u8; 2]),
    /// The lock: how often each thread takes it.
    Writers([u8; 3]),
}

/// Which thread does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Of what.
    pub what: What,
    /// Whether all fences are the CPU's own, as without membarrier.
    #[serde(default)]
    pub portable: bool,
}

/// A step that is left out or weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutant {
    /// The writer of a sequence lock does not make the sequence odd.
    SeqNoOdd,
    /// It executes no fence after that.
    SeqNoWriterFence,
    /// It makes the sequence even by a relaxed store.
    SeqRelaxedEven,
    /// The reader does not load the sequence again.
    SeqNoRecheck,
    /// It takes an odd sequence that it finds twice for an even one.
    SeqIgnoresOdd,
    /// It executes no fence before it loads the sequence again.
    SeqNoReaderFence,
    /// It loads the sequence by a relaxed load first.
    SeqRelaxedFirst,
    /// In the end it reads without the lock, and without looking at the sequence.
    SeqNoLock,
    /// The writer of a latch writes a copy before it sends readers to the other one.
    LatchCopyFirst,
    /// It does not look for pinned readers.
    LatchNoPins,
    /// It sends readers to the other copy by a plain store, without a fence.
    LatchNoFence,
    /// It sends them there by a relaxed exchange.
    LatchRelaxedStep,
    /// It looks for pinned readers by a relaxed load.
    LatchRelaxedLook,
    /// A reader that is pinned executes no fence.
    LatchNoPinFence,
    /// It ends by a relaxed subtraction.
    LatchRelaxedUnpin,
    /// A reader does not load the sequence again.
    LatchNoRecheck,
    /// It executes no fence before it does.
    LatchNoReaderFence,
    /// It loads the sequence by a relaxed load first.
    LatchRelaxedFirst,
    /// A thread that is about to sleep executes no fence.
    NoWritersFence,
    /// It executes one that reaches no other thread.
    WritersOwnFence,
    /// Without membarrier, the thread that lets go executes none.
    WritersNoLightFence,
    /// A thread that lets go wakes no other.
    NoWritersWakeUp,
    /// A thread that has had its turn does not wake the next.
    WritersNoTurn,
    /// It executes no fence before it looks whether there is a next one.
    WritersNoTurnFence,
    /// The first of those who wait loads the number of wake-ups by a relaxed load.
    WritersRelaxedWakes,
    /// It stays hungry.
    WritersStaysHungry,
    /// A thread that comes by takes a lock that was handed over.
    WritersStolen,
    /// The lock is taken by a relaxed exchange.
    WritersRelaxedTake,
    /// It is let go by a relaxed store.
    WritersRelaxedLetGo,
}

harness::world! {
    /// Sequence locks, latches and the lock among their writers, as a world.
    Sequence of "sequence";
    explore: |scenario, model, mutant, limit| {
        program::explore(plan(scenario, mutant), model, None, limit)
    };
}

fn plan(scenario: &Scenario, mutant: Option<Mutant>) -> Plan {
    let sequence = include_str!("../worlds/programs/sequence.txt");
    let writers = include_str!("../worlds/programs/writers.txt");
    let (name, text, [writes, reads]): (_, _, [&[u8]; 2]) = match &scenario.what {
        What::SeqLock(writes, reads) => ("seq-lock", sequence, [writes, reads]),
        What::Latch(writes, reads) => ("latch", sequence, [writes, reads]),
        What::Writers(times) => ("writers", writers, [times, &[]]),
    };
    let is = |asked: &str| match asked {
        "portable" => Some(scenario.portable),
        "seq-lock" | "latch" => Some(asked == name),
        _ => variant(asked).map(|this| mutant == Some(this)),
    };
    // Each thread on a CPU of its own.
    let threads = |role: &str| {
        let (first, times) = if role == "writer" { (0, writes) } else { (writes.len(), reads) };
        let seats = times.iter().zip(first..).filter(|(rounds, _)| **rounds != 0);
        seats
            .map(|(rounds, cpu)| Seat { rounds: *rounds, cpu: cpu as u8, ..Seat::default() })
            .collect()
    };
    let given = Given { is: &is, constants: Vec::new(), bodies: Vec::new(), threads: &threads };
    assemble(text, &given)
}
