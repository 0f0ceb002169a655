//! The updater and the runner of `compat`.
//!
//! Transcribed from `compat/src/hazard.rs` and `hazard/runner.rs`. The stack of what is retired is
//! a set of bits: it is taken as a whole, and who finds it empty is what matters.
//!
//! ```text
//! updater:  old = exchange(src, new, AcqRel)
//!           before = retired, with old added (Release); if before was empty:      [HP-3]
//!              exchange(state, WANTED, AcqRel); was it ASLEEP? wake
//! runner:   exchange(state, LOOKING, AcqRel)                                       [HP-3]
//!           mine = what was kept, and exchange(retired, none, Acquire)
//!           is there any? heavy fence                                            [HP-1]
//!              each place (Acquire): what it names is kept                         [HP-2]
//!              the others are freed
//!           compare-exchange(state, LOOKING, ASLEEP): else again; sleep while ASLEEP
//! ```

use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::READERS;
use super::fault::Mutant;
use super::world::{System, UPDATER, WORKER as RUNNER, World, bit, slot};
use crate::choice::Choice;
use crate::memory::{Location, Memory};
use crate::system::Outcome;

const RETIRED: Location = Location::Variable(0);
pub(super) const STATE: Location = Location::Wake;

pub(super) const ASLEEP: u64 = 1;
const LOOKING: u64 = 2;
const WANTED: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Updater {
    Publish,
    Retire(u8),
    Want,
    Wake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Runner {
    Begin,
    Take,
    /// The readers that the heavy fence has not reached yet.
    Fence(u8),
    Place(u8),
    Free,
    Rest,
    Sleep,
}

impl<M: Memory> System<M> {
    pub(super) fn retire(&self, world: &mut World<M>, at: Updater) -> Outcome {
        let asks = !self.is(Mutant::NoWake);
        let next = match at {
            Updater::Publish if world.objects > self.scenario.updates => return Outcome::Blocked,
            Updater::Publish => Updater::Retire(world.publish()),
            Updater::Retire(object) => {
                let order = self.unless(Mutant::RelaxedPush, Release);
                let by = 1 << object;
                let before = world.memory.update(UPDATER, RETIRED, order, |old| old | by);
                if before == 0 && asks { Updater::Want } else { Updater::Publish }
            }
            Updater::Want => {
                let before = world.memory.update(UPDATER, STATE, AcqRel, |_| WANTED);
                if before == ASLEEP { Updater::Wake } else { Updater::Publish }
            }
            Updater::Wake => {
                world.woken = true;
                Updater::Publish
            }
        };
        world.retirer = next;
        Outcome::Moved
    }

    pub(super) fn run(&self, world: &mut World<M>, choice: &mut Choice) -> Outcome {
        let is_early = self.is(Mutant::ScanFirst);
        let memory = &mut world.memory;
        world.runner = match world.runner {
            Runner::Begin => {
                memory.update(RUNNER, STATE, AcqRel, |_| LOOKING);
                Runner::Take
            }
            Runner::Take => {
                let order = self.unless(Mutant::RelaxedPop, Acquire);
                let taken = memory.update(RUNNER, RETIRED, order, |_| 0) as u8;
                world.batch = taken | core::mem::take(&mut world.kept);
                world.found = 0;
                match world.batch {
                    0 => Runner::Rest,
                    _ if is_early => Runner::Place(0),
                    _ => self.begin_runner(memory),
                }
            }
            Runner::Fence(left) => match self.fence_step(memory, RUNNER, left, choice) {
                Some(left) => Runner::Fence(left),
                None if is_early => Runner::Free,
                None => Runner::Place(0),
            },
            Runner::Place(reader) => {
                let order = self.unless(Mutant::RelaxedScan, Acquire);
                let named = memory.load(RUNNER, slot(reader, 0), order, choice);
                world.found |= world.batch & bit(named);
                let is_last = usize::from(reader) + 1 == READERS || self.is(Mutant::SkipBlock);
                match is_last {
                    false => Runner::Place(reader + 1),
                    true if is_early => self.begin_runner(memory),
                    true => Runner::Free,
                }
            }
            Runner::Free => {
                let mine = core::mem::take(&mut world.batch);
                world.kept = mine & world.found;
                world.runner = Runner::Rest;
                return self.put_all(world, RUNNER, mine & !world.found);
            }
            Runner::Rest => {
                let is_blind = self.is(Mutant::BlindSleep);
                let asleep = |old| if is_blind || old == LOOKING { ASLEEP } else { old };
                let before = memory.update(RUNNER, STATE, AcqRel, asleep);
                if before == LOOKING || is_blind { Runner::Sleep } else { Runner::Begin }
            }
            // The futex compares once, and then waits for the wake-up of the thread that found it
            // asleep.
            Runner::Sleep if world.woken => {
                world.woken = false;
                Runner::Begin
            }
            Runner::Sleep => return Outcome::Blocked,
        };
        Outcome::Moved
    }

    /// Its fence, or what follows that without it.
    fn begin_runner(&self, memory: &mut M) -> Runner {
        match self.mutant {
            Some(Mutant::NoFence) => Runner::Place(0),
            _ => Runner::Fence(self.begin_fence(memory, RUNNER)),
        }
    }
}
