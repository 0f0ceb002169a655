//! Hazard pointers: what a guard protects is not freed, and what is retired is freed once no guard
//! protects it.
//!
//! Transcribed from `quiescence/src/hazptr`: `reader` has the threads that hold guards, `world`
//! those that reclaim. The grace period is two numbers here and one heavy fence; the machine that
//! gives out cookies is explored in [`crate::explore`].
//!
//! Two threads read; each has a *block* of one slot or two. A guard may end in another thread than
//! the one that took it. One thread replaces the object and retires the old one, closes a batch of
//! them, waits for the batch's grace period and scans all slots once. What is protected then goes
//! to the worker, which scans again, without a fence, until nothing is left. Either of the two, or
//! a third thread, executes the fence.
//!
//! # What it confirms
//!
//! **No fence is needed for what is scanned again.** After the heavy fence of the first scan no
//! reader passes its second load with a retired object: it saw it in the pointer before the fence,
//! and then its slot was seen, or it does not see it there any more. What protects such an object
//! is in a slot already, stays in it, and only ends.
//!
//! **The owner's look at a slot is an Acquire.** A guard that ended in another thread is followed
//! by the owner's next protection; the scan finds that one alone ([`Mutant::RelaxedOwner`]).
//!
//! **A guard is copied by counting, not by a second slot**: the scan may look at the second slot
//! before the copy and at the first one after its end ([`Mutant::CopiedProtection`]).

mod fault;
mod reader;
mod world;

use crate::explore::{Model, Verdict};
use crate::harness::World as Harnessed;
use crate::program;

pub use fault::{FAULTS, Fault, Mutant};

pub(crate) const READERS: usize = 2;
/// Slots of a block, at most.
pub(crate) const SLOTS: usize = 2;

/// What a reader does with one guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// It protects the object, reads it, and ends.
    Read,
    /// It protects the object, reads it, and gives the guard to the other reader.
    Give,
    /// It gets the other reader's guard, reads through it, and ends it.
    Take,
    /// It protects the object, counts a reference of its own, ends the guard, reads, and drops the
    /// reference: `load_full`.
    Clone,
}

/// Who executes the fence of a grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The thread that waits for it.
    Updater,
    /// The worker, which scans again what is kept, too.
    Worker,
    /// The second reader, which does nothing else.
    Third,
}

/// Which thread does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What the readers do.
    pub readers: [&'static [Op]; READERS],
    /// How often the object is replaced.
    pub updates: u8,
    /// How many retired objects are one batch.
    pub batch: u8,
    /// Slots of each block.
    pub slots: u8,
    /// Who drives grace periods.
    pub driver: Driver,
    /// Whether readers make their blocks known at their first guard, or before the begin.
    pub is_late: bool,
    /// Whether all fences are the CPU's own, as without membarrier.
    pub portable: bool,
}

const READ: &[Op] = &[Op::Read];

const PLAIN: Scenario = Scenario {
    name: "two-readers",
    readers: [READ, READ],
    updates: 1,
    batch: 1,
    slots: 1,
    driver: Driver::Worker,
    is_late: false,
    portable: false,
};

/// Every scenario, with membarrier; the portable ones are these again.
const SCENARIOS: [Scenario; 8] = [
    PLAIN,
    Scenario {
        name: "two-reads",
        readers: [&[Op::Read, Op::Read], &[]],
        updates: 2,
        driver: Driver::Updater,
        ..PLAIN
    },
    Scenario { name: "batch", readers: [READ, &[]], updates: 2, batch: 2, ..PLAIN },
    Scenario {
        name: "handed-over",
        readers: [&[Op::Give, Op::Read], &[Op::Take]],
        driver: Driver::Updater,
        ..PLAIN
    },
    Scenario {
        name: "two-slots",
        readers: [&[Op::Give, Op::Read], &[Op::Take]],
        slots: 2,
        driver: Driver::Updater,
        ..PLAIN
    },
    Scenario {
        name: "late-readers",
        readers: [READ, READ],
        driver: Driver::Updater,
        is_late: true,
        ..PLAIN
    },
    Scenario { name: "third-driver", readers: [READ, &[]], driver: Driver::Third, ..PLAIN },
    Scenario { name: "clone", readers: [&[Op::Clone], READ], slots: 2, ..PLAIN },
];

const PORTABLE: [&str; SCENARIOS.len()] = [
    "portable-two-readers",
    "portable-two-reads",
    "portable-batch",
    "portable-handed-over",
    "portable-two-slots",
    "portable-late-readers",
    "portable-third-driver",
    "portable-clone",
];

/// Hazard pointers, as a world.
#[derive(Clone, Copy, Debug)]
pub struct Hazard;

impl Harnessed for Hazard {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const FAULTS: &'static [Fault] = FAULTS;
    const PREFIX: &'static str = "hazard-";

    fn scenarios() -> Vec<Scenario> {
        let portable = SCENARIOS.into_iter().zip(PORTABLE);
        let portable =
            portable.map(|(scenario, name)| Scenario { name, portable: true, ..scenario });
        SCENARIOS.into_iter().chain(portable).collect()
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        scenario.name
    }

    fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
        program::explore(*scenario, model, mutant, limit)
    }
}
