//! Hazard pointers: what a guard protects is not freed, and what is retired is freed once no guard
//! protects it.
//!
//! The programs are `worlds/programs/hazard.txt`, the scenarios and what comes of each step that is
//! left out `worlds/hazard.toml`. The grace period is two numbers here and one
//! heavy fence; the machine that gives out cookies is explored in `crate::explore`.
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
//! by the owner's next protection; the scan finds that one alone (`hazard-relaxed-owner`).
//!
//! **A guard is copied by counting, not by a second slot**: the scan may look at the second slot
//! before the copy and at the first one after its end (`hazard-copied-protection`).

use std::sync::LazyLock;

use crate::harness::{self, Table, World};
use crate::machine::{self, Scenario};

/// Hazard pointers, as a world: each scenario also without membarrier.
pub static HAZARD: LazyLock<World> = LazyLock::new(|| {
    let mut table: Table<Scenario> = harness::table!("hazard");
    for index in 0..table.scenario.len() {
        let mut scenario = table.scenario[index].clone();
        scenario.name = format!("portable-{}", scenario.name).leak();
        scenario.holds.push("portable");
        table.scenario.push(scenario);
    }
    machine::world("hazard-", table)
});
