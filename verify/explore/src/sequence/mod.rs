//! Sequence locks and latches: what is read is one value; and the lock among their writers.
//!
//! Transcribed from `quiescence/src/sync`: `seq_lock.rs` and `latch.rs` in `words`, `writers.rs`
//! in `lock`. A value is two words, equal in each value; the words of a copy are variables. A
//! reader tries once before it takes the lock, or pins. In `words` the lock among writers is one
//! of the model's; in `lock` it is looked at for itself.

mod lock;
mod words;

use crate::explore::{Model, Verdict};
use crate::harness::{self, World as Harnessed};
use crate::program;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A sequence lock: so often each of two writers writes, and each of two readers reads.
    SeqLock([u8; 2], [u8; 2]),
    /// A latch: the same.
    Latch([u8; 2], [u8; 2]),
    /// The lock: how often each thread takes it.
    Writers([u8; 3]),
}

/// Which thread does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Of what.
    pub what: What,
    /// Whether all fences are the CPU's own, as without membarrier.
    pub portable: bool,
}

/// A step that is left out or weakened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// What is known about a mutant.
pub type Fault = harness::Fault<Mutant>;

harness::faults! {
    SeqNoOdd Unsafe Both "seq-one-each" "a reader between the words finds the number twice";
    SeqNoWriterFence Unsafe WeakOnly "seq-one-each" "a word comes before the odd number";
    SeqRelaxedEven Unsafe WeakOnly "seq-one-each" "the even number comes before a word";
    SeqNoRecheck Unsafe Both "seq-one-each" "a writer begins between the words";
    SeqIgnoresOdd Unsafe Both "seq-one-each" "a reader that comes and goes between the words";
    SeqNoReaderFence Unsafe WeakOnly "seq-one-each" "the number is loaded before a word";
    SeqRelaxedFirst Unsafe WeakOnly "seq-one-each" "a word is loaded before the number";
    SeqNoLock Unsafe Both "seq-one-each" "a writer begins between the words";
    LatchCopyFirst Unsafe Both "latch-one-each" "readers are at the copy that is written";
    LatchNoPins Unsafe Both "latch-one-each" "a pinned reader's copy is written";
    LatchNoFence Unsafe Both "latch-one-each" "the pin and the number pass each other";
    LatchRelaxedStep Unsafe WeakOnly "latch-one-each" "the number comes before a word";
    LatchRelaxedLook Unsafe WeakOnly "latch-one-each" "nothing orders a read before the write";
    LatchNoPinFence Unsafe WeakOnly "latch-one-each" "the pin and the number pass each other";
    LatchRelaxedUnpin Unsafe WeakOnly "latch-one-each" "nothing orders a read before the write";
    LatchNoRecheck Unsafe Both "latch-two-writes" "a writer comes to the copy between the words";
    LatchNoReaderFence Unsafe WeakOnly "latch-one-each" "the number is loaded before a word";
    LatchRelaxedFirst Unsafe WeakOnly "latch-one-each" "a word is loaded before the number";
    NoWritersFence Stuck Both "writers-two" "the last look at who waits comes before its store";
    WritersOwnFence Stuck Both "writers-two" "the same";
    WritersNoLightFence Stuck Both "writers-two-portable" "the same";
    NoWritersWakeUp Stuck Both "writers-two" "the sleeper sleeps on";
    WritersNoTurn Stuck Both "writers-three" "the second who sleeps is not woken";
    WritersNoTurnFence Stuck Both "writers-two-portable" "the next one is not seen to come";
    WritersRelaxedWakes Stuck WeakOnly "writers-two" "it sleeps by a word before the wake-up";
    WritersStaysHungry Harmless Neither "writers-three"
        "a lock that is handed to no thread is taken by the next that comes, in its turn";
    WritersStolen Unsafe Both "writers-handed" "the lock is taken by two";
    WritersRelaxedTake Unsafe WeakOnly "writers-two" "what was written before is not seen";
    WritersRelaxedLetGo Unsafe WeakOnly "writers-two" "the same";
}

/// Sequence locks, latches and the lock among their writers, as a world.
#[derive(Clone, Copy, Debug)]
pub struct Sequence;

impl Harnessed for Sequence {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const FAULTS: &'static [Fault] = FAULTS;

    fn scenarios() -> Vec<Scenario> {
        let of = |name, what, portable| Scenario { name, what, portable };
        vec![
            of("seq-one-each", What::SeqLock([1, 0], [1, 0]), false),
            of("seq-two-writers", What::SeqLock([1, 1], [2, 0]), false),
            of("seq-two-readers", What::SeqLock([2, 0], [1, 1]), false),
            of("latch-one-each", What::Latch([1, 0], [1, 0]), false),
            of("latch-two-writes", What::Latch([2, 0], [1, 0]), false),
            of("latch-two-writers", What::Latch([1, 1], [2, 0]), false),
            of("latch-two-readers", What::Latch([1, 0], [1, 1]), false),
            of("writers-two", What::Writers([1, 2, 0]), false),
            of("writers-handed", What::Writers([1, 3, 0]), false),
            of("writers-three", What::Writers([1, 1, 1]), false),
            of("writers-two-portable", What::Writers([1, 2, 0]), true),
            of("writers-three-portable", What::Writers([1, 1, 1]), true),
        ]
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        scenario.name
    }

    fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
        let words = |kind, writes, reads| {
            program::explore(words::Words { kind, writes, reads }, model, mutant, limit)
        };
        match scenario.what {
            What::SeqLock(writes, reads) => words(words::Kind::SeqLock, writes, reads),
            What::Latch(writes, reads) => words(words::Kind::Latch, writes, reads),
            What::Writers(times) => {
                let takers = lock::Takers { times, portable: scenario.portable };
                program::explore(takers, model, mutant, limit)
            }
        }
    }
}
