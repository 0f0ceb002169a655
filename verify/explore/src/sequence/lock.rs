//! The lock among writers: at most one thread has it, each sees what the one before has written,
//! and no thread sleeps for ever.
//!
//! A thread that does not get the lock at once is at the end of its looks. The futex compares the
//! newest value once, and then waits for a wake-up.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::Mutant;
use crate::choice::Choice;
use crate::memory::{LOCATIONS, Layout, Location, Memory};
use crate::program::{Program, Threads};
use crate::system::Outcome;

const THREADS: usize = 3;

/// The word: which bit it has, without the number.
const STATE: Location = Location::Variable(0);
const HUNGRY: Location = Location::Variable(1);
const CAME: Location = Location::Variable(2);
const LEFT: Location = Location::Variable(3);
/// What the first of those who wait sleeps on.
const WAKES: Location = Location::Wake;
/// How often the lock was taken: what holders write.
const TAKEN: Location = Location::Completed;

const FREE: u64 = 0;
const HELD: u64 = 1;
const HANDED: u64 = 2;

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Take,
    Come,
    /// With its turn, and the threads that the heavy fence has not reached yet.
    Fence(u64, u8),
    Turn(u64),
    /// With the number that was left, which the futex compares.
    WaitTurn(u64, u64),
    AsleepTurn(u64),
    /// The first of those who wait; how often it has been woken, up to two.
    First(u64, u8),
    /// With the number of wake-ups, which the futex compares.
    Word(u64, u8, u64),
    TakeFree(u64, u8, u64),
    TakeHanded(u64),
    Hungry(u64, u64),
    Wait(u64, u8, u64),
    Asleep(u64, u8),
    Sated(u64),
    Left(u64),
    Others(u64),
    Look,
    Count(u64),
    LetGo,
    LetFree,
    HandOver,
    LightFence,
    LookCame,
    LookLeft(u64),
    Wake,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World<M> {
    memory: M,
    threads: [(At, u8); THREADS],
    holder: Option<u8>,
    taken: u64,
}

/// How often each thread takes the lock.
pub(super) struct Takers {
    pub(super) times: [u8; THREADS],
    pub(super) portable: bool,
}

type System<M> = Program<M, Takers, Mutant>;

impl<M: Memory> System<M> {
    /// The lock is this thread's, which stands at `next` then.
    fn taken(world: &mut World<M>, me: usize, next: At) -> Outcome {
        if let Some(holder) = world.holder {
            return Outcome::Violation(format!("thread {me} takes the lock of thread {holder}"));
        }
        world.holder = Some(me as u8);
        world.threads[me].0 = next;
        Outcome::Moved
    }

    /// Takes the lock if it is free, or else stands at `next`. Who finds it taken does not try.
    fn try_take(
        &self,
        world: &mut World<M>,
        me: usize,
        choice: &mut Choice,
        (taken, next): (At, At),
    ) -> Outcome {
        let seen = world.memory.load(me, STATE, Relaxed, choice);
        if seen == HELD || (seen == HANDED && !self.is(Mutant::WritersStolen)) {
            world.threads[me].0 = next;
            return Outcome::Moved;
        }
        let take = |old| if old == FREE { HELD } else { old };
        let steal = |old| if old == FREE || old == HANDED { HELD } else { old };
        let order = self.unless(Mutant::WritersRelaxedTake, Acquire);
        let before = if self.is(Mutant::WritersStolen) {
            world.memory.update(me, STATE, order, steal)
        } else {
            world.memory.update(me, STATE, order, take)
        };
        if before == FREE || (before == HANDED && self.is(Mutant::WritersStolen)) {
            return Self::taken(world, me, taken);
        }
        world.threads[me].0 = next;
        Outcome::Moved
    }
}

impl<M: Memory> Threads for System<M> {
    type Memory = M;
    type World = World<M>;

    const NAMES: &'static [&'static str] = &["thread 0", "thread 1", "thread 2"];

    fn first(&self) -> World<M> {
        let mut loaders = [0; LOCATIONS];
        for at in [STATE, HUNGRY, CAME, LEFT, WAKES, TAKEN] {
            loaders[at.index()] = (1 << THREADS) - 1;
        }
        World {
            memory: M::new(&Layout { threads: THREADS, initial: [0; LOCATIONS], loaders }),
            threads: self.scenario.times.map(|times| (At::Take, times)),
            holder: None,
            taken: 0,
        }
    }

    fn memory(world: &mut World<M>) -> &mut M {
        &mut world.memory
    }

    fn step(&self, world: &mut World<M>, me: usize, choice: &mut Choice) -> Outcome {
        let (at, left) = world.threads[me];
        let others = ((1_u8 << THREADS) - 1) & !(1 << me);
        let memory = &mut world.memory;
        let next = match at {
            At::Take if left == 0 => return Outcome::Blocked,
            At::Take => return self.try_take(world, me, choice, (At::Look, At::Come)),
            At::Come => {
                let turn = memory.update(me, CAME, Relaxed, |old| old + 1);
                if self.is(Mutant::NoWritersFence) {
                    At::Turn(turn)
                } else if self.scenario.portable {
                    memory.fence(me);
                    At::Turn(turn)
                } else {
                    memory.heavy_begin(me);
                    At::Fence(turn, if self.is(Mutant::WritersOwnFence) { 0 } else { others })
                }
            }
            At::Fence(turn, 0) => {
                memory.heavy_end(me);
                At::Turn(turn)
            }
            At::Fence(turn, left) => {
                let other = choice.one_of(left);
                memory.heavy_arrives(me, other);
                At::Fence(turn, left & !(1 << other))
            }
            At::Turn(turn) => match memory.load(me, LEFT, Acquire, choice) {
                left if left == turn => At::First(turn, 0),
                left => At::WaitTurn(turn, left),
            },
            At::WaitTurn(turn, left) => {
                memory.system_call(me);
                if memory.newest(LEFT) == left { At::AsleepTurn(turn) } else { At::Turn(turn) }
            }
            At::AsleepTurn(_) | At::Asleep(..) => return Outcome::Blocked,
            At::First(turn, woken) => {
                let order = self.unless(Mutant::WritersRelaxedWakes, Acquire);
                At::Word(turn, woken, memory.load(me, WAKES, order, choice))
            }
            At::Word(turn, woken, wakes) => {
                let order = self.unless(Mutant::WritersRelaxedTake, Acquire);
                match memory.load(me, STATE, order, choice) {
                    HANDED => At::TakeHanded(turn),
                    _ => At::TakeFree(turn, woken, wakes),
                }
            }
            At::TakeHanded(turn) => {
                memory.store(me, STATE, HELD, Relaxed);
                return Self::taken(world, me, At::Sated(turn));
            }
            At::TakeFree(turn, woken, wakes) => {
                // It says so once.
                let next =
                    if woken == 1 { At::Hungry(turn, wakes) } else { At::Wait(turn, woken, wakes) };
                return self.try_take(world, me, choice, (At::Sated(turn), next));
            }
            At::Hungry(turn, wakes) => {
                memory.store(me, HUNGRY, 1, Relaxed);
                At::Wait(turn, 2, wakes)
            }
            At::Wait(turn, woken, wakes) => {
                memory.system_call(me);
                if memory.newest(WAKES) == wakes {
                    At::Asleep(turn, woken)
                } else {
                    At::First(turn, woken.max(1))
                }
            }
            At::Sated(turn) => {
                if !self.is(Mutant::WritersStaysHungry) {
                    memory.store(me, HUNGRY, 0, Relaxed);
                }
                At::Left(turn)
            }
            At::Left(turn) => {
                memory.store(me, LEFT, turn + 1, Release);
                if !self.is(Mutant::WritersNoTurnFence) {
                    memory.fence(me);
                }
                At::Others(turn)
            }
            At::Others(turn) => {
                let came = memory.load(me, CAME, Relaxed, choice);
                if came != turn + 1 && !self.is(Mutant::WritersNoTurn) {
                    memory.system_call(me);
                    for (at, _) in &mut world.threads {
                        if let At::AsleepTurn(turn) = *at {
                            *at = At::Turn(turn);
                        }
                    }
                }
                At::Look
            }
            At::Look => At::Count(memory.load(me, TAKEN, Relaxed, choice)),
            At::Count(seen) if seen != world.taken => {
                return Outcome::Violation(format!(
                    "a holder sees {seen} where those before it have written {}",
                    world.taken
                ));
            }
            At::Count(seen) => {
                memory.store(me, TAKEN, seen + 1, Relaxed);
                world.taken += 1;
                At::LetGo
            }
            At::LetGo if memory.load(me, HUNGRY, Relaxed, choice) != 0 => At::HandOver,
            At::LetGo => At::LetFree,
            At::HandOver | At::LetFree => {
                let order = self.unless(Mutant::WritersRelaxedLetGo, Release);
                let to = if at == At::HandOver { HANDED } else { FREE };
                memory.store(me, STATE, to, order);
                world.holder = None;
                if at == At::HandOver { At::Wake } else { At::LightFence }
            }
            At::LightFence => {
                if self.scenario.portable && !self.is(Mutant::WritersNoLightFence) {
                    memory.fence(me);
                }
                At::LookCame
            }
            At::LookCame => At::LookLeft(memory.load(me, CAME, Relaxed, choice)),
            At::LookLeft(came) if memory.load(me, LEFT, Relaxed, choice) != came => At::Wake,
            At::LookLeft(_) => {
                world.threads[me] = (At::Take, left - 1);
                return Outcome::Moved;
            }
            At::Wake => {
                if !self.is(Mutant::NoWritersWakeUp) {
                    memory.update(me, WAKES, Release, |old| old + 1);
                    for (at, _) in &mut world.threads {
                        if let At::Asleep(turn, woken) = *at {
                            *at = At::First(turn, woken.max(1));
                        }
                    }
                }
                world.threads[me] = (At::Take, left - 1);
                return Outcome::Moved;
            }
        };
        world.threads[me].0 = next;
        Outcome::Moved
    }

    fn active(&self, world: &World<M>) -> u8 {
        let active = (0..THREADS).filter(|thread| world.threads[*thread] != (At::Take, 0));
        active.fold(0, |active, thread| active | 1 << thread)
    }

    fn tell(&self, world: &World<M>) -> String {
        format!("{:?}", world.threads)
    }
}
