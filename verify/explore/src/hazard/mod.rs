//! Hazard pointers: what a guard protects is not freed, and what is retired is freed once no guard
//! protects it.
//!
//! The programs are `worlds/programs/hazard.txt`. The grace period is two numbers here and one
//! heavy fence; the machine that gives out cookies is explored in [`crate::explore`].
//!
//! Two threads read; each has a *block* of one slot or two. A guard may end in another thread than
//! the one that took it. One thread replaces the object and retires the old one, closes a batch of
//! them, waits for the batch's grace period and scans all slots once. What is protected then goes
//! to the worker, which scans again, without a fence, until nothing is left. Either of the two, or
//! a third thread, executes the fence.
//!
//! The headers of `compat` have one thread, the *runner*, which takes all that was retired,
//! executes the fence and scans. Each reader has one place. Scenarios that it is in are named
//! `compat-...`.
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

use serde::Deserialize;

use crate::harness::{self, Table, kebab, variant};
use crate::machine::{Given, Line, Plan, Seat, assemble};
use crate::program;

pub use fault::Mutant;

const READERS: usize = 2;

/// What a reader does with one guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// The thread that waits for it.
    Updater,
    /// The worker, which scans again what is kept, too.
    Worker,
    /// The second reader, which does nothing else.
    Third,
    /// The runner of `compat`, in place of the worker.
    Runner,
}

/// Which thread does what.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What the readers do.
    pub readers: [Vec<Op>; READERS],
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

impl Default for Scenario {
    fn default() -> Self {
        Self {
            name: "",
            readers: Default::default(),
            updates: 1,
            batch: 1,
            slots: 1,
            driver: Driver::Worker,
            is_late: false,
            portable: false,
        }
    }
}

impl Scenario {
    /// What a reader does, as lines of the text: with which slot, which other one, and from which
    /// number on.
    fn program(&self, reader: usize) -> Vec<Line> {
        let (own, other) = (format!("slot[number+{}]", 2 * reader), 2 * reader + 1);
        let base = (2 * reader).to_string();
        let line = |op: &Op| vec![kebab(op), own.clone(), format!("slot[{other}]"), base.clone()];
        let ops = &self.readers[reader];
        let appears = self.is_late && !ops.starts_with(&[Op::Take]);
        let appear = appears.then(|| vec!["appear".to_owned(), (1 << reader).to_string()]);
        appear.into_iter().chain(ops.iter().map(line)).collect()
    }

    fn plan(&self, mutant: Option<Mutant>) -> Plan {
        let counts = self.readers.iter().any(|ops| ops.contains(&Op::Clone));
        let is = |name: &str| match name {
            "portable" => Some(self.portable),
            "two-slots" => Some(self.slots == 2),
            "counts" => Some(counts),
            "compat" => Some(self.driver == Driver::Runner),
            "updater-drives" => Some(self.driver == Driver::Updater),
            _ => variant(name).map(|this| mutant == Some(this)),
        };
        let threads = |role: &str| {
            let seat = |cpu| vec![Seat { cpu, ..Seat::default() }];
            match (role, self.driver) {
                ("reader-0", _) if !self.readers[0].is_empty() => seat(0),
                ("reader-1", _) if !self.readers[1].is_empty() => seat(1),
                ("updater", _) => vec![Seat { rounds: self.updates, cpu: 2, ..Seat::default() }],
                ("runner", Driver::Runner) => {
                    vec![Seat { cpu: 3, serves: true, ..Seat::default() }]
                }
                ("worker", Driver::Updater | Driver::Worker | Driver::Third) => seat(3),
                ("driver", Driver::Worker) => seat(3),
                ("driver", Driver::Third) => seat(1),
                _ => Vec::new(),
            }
        };
        let constants = vec![
            ("slots", self.slots.into()),
            ("batch-size", self.batch.into()),
            ("references", u64::from(self.driver != Driver::Runner)),
            ("known-blocks", if self.is_late { 0 } else { 3 }),
        ];
        let bodies = vec![("program-0", self.program(0)), ("program-1", self.program(1))];
        let given = Given { is: &is, constants, bodies, threads: &threads };
        assemble(include_str!("../../worlds/programs/hazard.txt"), &given)
    }
}

/// Each scenario again without membarrier.
fn with_portable(mut table: Table<Scenario, Mutant>) -> Table<Scenario, Mutant> {
    for index in 0..table.scenario.len() {
        let scenario = table.scenario[index].clone();
        let name = format!("portable-{}", scenario.name).leak();
        table.scenario.push(Scenario { name, portable: true, ..scenario });
    }
    table
}

harness::world! {
    /// Hazard pointers, as a world.
    Hazard of "hazard" with with_portable;
    explore: |scenario, model, mutant, limit| {
        program::explore(scenario.plan(mutant), model, None, limit)
    };

    const PREFIX: &'static str = "hazard-";
}
