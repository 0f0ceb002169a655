//! System V semaphores: sets that are found by an id, a lock for each set, and no lock to find one.
//!
//! What they do is in semop(2), semctl(2) and semget(2): several operations happen together or not
//! at all, wait in turn, and are undone when their process ends, if they asked for it. The calls
//! are methods here, processes are values ([`Process`]), and errors have the names of errno.
//!
//! How a set is found is a parameter. [`ById`] looks it up in an id table, in a section, and then
//! takes the lock of the set: its *removed* flag, which `IPC_RMID` sets under that lock, says
//! whether the set was removed between the look-up and the lock. So the look-up may be stale, and
//! the answer is not. [`OneLock`] is what one does first: one lock for all sets.
//!
//! Source of the idea: the kernel's `ipc/sem.c` and `ipc/util.c` since 2.5.46, of which Arcangeli,
//! Cao, McKenney and Sarma report (USENIX 2003) that a benchmark of nothing but `semop` took 46.7 s
//! in place of 515.3 s on 8 CPUs, and that the database test DBT1 made 89.8 transactions a second
//! in place of 85.0 on 2.
//!
//! The lock of a set is never held across a sleep, nor is a section: a thread that has to wait
//! leaves what it wants in the set's queue, and who changes the set does it on its behalf.

#![allow(dead_code, reason = "a part for each program that includes this file")]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use quiescence::Weigh;
use quiescence::collections::{Id, IdMap};

/// The largest value of a semaphore (`SEMVMX`).
pub(crate) const VALUE_MAX: i32 = 32_767;
/// Operations of one call, at most (`SEMOPM`).
pub(crate) const OPERATIONS_MAX: usize = 500;
/// Semaphores of a set, at most (`SEMMSL`).
pub(crate) const SEMAPHORES_MAX: usize = 32_000;
/// The key of a set that no other call of `semget` finds (`IPC_PRIVATE`).
pub(crate) const PRIVATE: i32 = 0;

/// What may be wrong, by its name in errno.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// It would have to wait, and was not to (`EAGAIN`).
    Again,
    /// There is a set with this key (`EEXIST`).
    Exists,
    /// The set has no semaphore of that number (`EFBIG`).
    TooBig,
    /// The set was removed meanwhile (`EIDRM`).
    Removed,
    /// There is no such set, or it cannot be made (`EINVAL`).
    Invalid,
    /// There is no set with this key (`ENOENT`).
    NoEntry,
    /// A value would be too large (`ERANGE`).
    Range,
    /// Too many operations (`E2BIG`).
    TooMany,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Again => "EAGAIN",
            Self::Exists => "EEXIST",
            Self::TooBig => "EFBIG",
            Self::Removed => "EIDRM",
            Self::Invalid => "EINVAL",
            Self::NoEntry => "ENOENT",
            Self::Range => "ERANGE",
            Self::TooMany => "E2BIG",
        })
    }
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// One operation on one semaphore: `struct sembuf`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    number: u16,
    change: i16,
    no_wait: bool,
    undo: bool,
}

impl Op {
    /// Adds `change`; waits until the value is large enough, if that is negative, and until it is
    /// 0, if that is 0.
    pub(crate) const fn new(number: u16, change: i16) -> Self {
        Self { number, change, no_wait: false, undo: false }
    }

    /// Does not wait (`IPC_NOWAIT`).
    pub(crate) const fn no_wait(self) -> Self {
        Self { no_wait: true, ..self }
    }

    /// Is undone when the process ends (`SEM_UNDO`).
    pub(crate) const fn undo(self) -> Self {
        Self { undo: true, ..self }
    }
}

/// How `semget` treats keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Get {
    /// The set with the key.
    Existing,
    /// That, or a new one (`IPC_CREAT`).
    OrNew,
    /// A new one (`IPC_CREAT | IPC_EXCL`).
    New,
}

/// A thread that waits.
#[derive(Debug, Default)]
struct Sleeper {
    result: Mutex<Option<Result<()>>>,
    done: Condvar,
}

impl Sleeper {
    fn wake(&self, result: Result<()>) {
        *lock(&self.result) = Some(result);
        self.done.notify_one();
    }

    fn wait(&self) -> Result<()> {
        let result = self.done.wait_while(lock(&self.result), |result| result.is_none());
        result.unwrap_or_else(PoisonError::into_inner).expect("the wait ends with one")
    }
}

/// Operations that wait for their turn.
#[derive(Debug)]
struct Waiting {
    process: u32,
    ops: Box<[Op]>,
    /// Which of them could not be done.
    blocked: Op,
    sleeper: Arc<Sleeper>,
}

/// A set of semaphores.
#[derive(Debug)]
pub(crate) struct Set {
    values: Box<[i32]>,
    /// No operation begins any more, and all that wait have been woken.
    removed: bool,
    waiting: VecDeque<Waiting>,
    /// What is to be added to each value when a process ends.
    undo: BTreeMap<u32, Box<[i64]>>,
}

impl Set {
    fn new(semaphores: usize) -> Self {
        Self {
            values: vec![0; semaphores].into(),
            removed: false,
            waiting: VecDeque::new(),
            undo: BTreeMap::new(),
        }
    }

    /// Does all of the operations, or none: gives the one that has to wait.
    fn attempt(&mut self, process: u32, ops: &[Op]) -> Result<Option<Op>> {
        for (done, op) in ops.iter().enumerate() {
            let value = &mut self.values[usize::from(op.number)];
            let new = *value + i32::from(op.change);
            let is_blocked = if op.change == 0 { *value != 0 } else { new < 0 };
            if is_blocked || new > VALUE_MAX {
                for op in &ops[..done] {
                    self.values[usize::from(op.number)] -= i32::from(op.change);
                }
                return if is_blocked { Ok(Some(*op)) } else { Err(Error::Range) };
            }
            *value = new;
        }
        for op in ops.iter().filter(|op| op.undo) {
            let count = self.values.len();
            let undo = self.undo.entry(process).or_insert_with(|| vec![0; count].into());
            undo[usize::from(op.number)] -= i64::from(op.change);
        }
        Ok(None)
    }

    /// Does what can be done now of what waits, oldest first.
    fn serve(&mut self) {
        let mut next = 0;
        while next < self.waiting.len() {
            let waiting = self.waiting.remove(next).expect("it is less than the length");
            match self.attempt(waiting.process, &waiting.ops) {
                Ok(Some(blocked)) => {
                    self.waiting.insert(next, Waiting { blocked, ..waiting });
                    next += 1;
                }
                result => {
                    waiting.sleeper.wake(result.map(drop));
                    next = 0; // older ones may have their turn by that
                }
            }
        }
    }

    fn check(&self, number: u16) -> Result<usize> {
        let number = usize::from(number);
        if number < self.values.len() { Ok(number) } else { Err(Error::TooBig) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How sets are found by their ids.
pub(crate) trait Sets: Default + Send + Sync {
    fn insert(&self, set: Set) -> Id;

    /// Calls `f` with the set, locked, if there is one. It may have been removed since it was
    /// found, and says so then.
    fn with<R>(&self, id: Id, f: impl FnOnce(&mut Set) -> R) -> Option<R>;

    fn remove(&self, id: Id);
}

/// In an id table, with a lock each: to find one takes no lock, and writes nothing.
#[derive(Debug, Default)]
pub(crate) struct ById(IdMap<Mutex<Set>>);

impl Weigh for Set {
    fn owned(&self) -> usize {
        size_of_val(&*self.values)
    }
}

impl Sets for ById {
    fn insert(&self, set: Set) -> Id {
        self.0.insert(Mutex::new(set))
    }

    fn with<R>(&self, id: Id, f: impl FnOnce(&mut Set) -> R) -> Option<R> {
        self.0.read().get(id).map(|set| f(&mut lock(set)))
    }

    fn remove(&self, id: Id) {
        self.0.remove(id);
    }
}

/// Under one lock for all, which is held as long as a set is used.
#[derive(Debug, Default)]
pub(crate) struct OneLock(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    slots: Vec<(u32, Option<Set>)>,
    free: Vec<u32>,
}

impl Sets for OneLock {
    fn insert(&self, set: Set) -> Id {
        let mut all = lock(&self.0);
        let index = all.free.pop().unwrap_or_else(|| {
            all.slots.push((0, None));
            (all.slots.len() - 1) as u32
        });
        let slot = &mut all.slots[index as usize];
        *slot = (slot.0 + 1, Some(set));
        Id::from_bits(u64::from(slot.0) << 32 | u64::from(index)).expect("counted from 1")
    }

    fn with<R>(&self, id: Id, f: impl FnOnce(&mut Set) -> R) -> Option<R> {
        let mut all = lock(&self.0);
        let (generation, set) = all.slots.get_mut(id.index() as usize)?;
        set.as_mut().filter(|_| *generation == id.generation()).map(f)
    }

    fn remove(&self, id: Id) {
        let mut all = lock(&self.0);
        if let Some((generation, set)) = all.slots.get_mut(id.index() as usize)
            && *generation == id.generation()
            && set.take().is_some()
        {
            all.free.push(id.index());
        }
    }
}

/// All semaphores of a system.
#[derive(Debug, Default)]
pub(crate) struct Semaphores<S: Sets = ById> {
    sets: S,
    /// The sets that have keys: for `semget` and `IPC_RMID` only.
    keys: Mutex<BTreeMap<i32, Id>>,
    processes: AtomicU32,
}

/// A process: what it has done with [`Op::undo`] is undone when it is dropped.
#[derive(Debug)]
pub(crate) struct Process<'s, S: Sets = ById> {
    system: &'s Semaphores<S>,
    number: u32,
    /// Sets where something is to be undone.
    undo_in: Mutex<BTreeSet<Id>>,
}

impl<S: Sets> Semaphores<S> {
    pub(crate) fn new() -> Self {
        Self { sets: S::default(), keys: Mutex::default(), processes: AtomicU32::new(0) }
    }

    /// A new process.
    pub(crate) fn process(&self) -> Process<'_, S> {
        let number = self.processes.fetch_add(1, Relaxed); // a number
        Process { system: self, number, undo_in: Mutex::default() }
    }

    /// The set with a key, or a new one of so many semaphores.
    pub(crate) fn semget(&self, key: i32, semaphores: usize, get: Get) -> Result<Id> {
        let new = || match semaphores {
            1..=SEMAPHORES_MAX => Ok(self.sets.insert(Set::new(semaphores))),
            _ => Err(Error::Invalid),
        };
        if key == PRIVATE {
            return new();
        }
        let mut keys = lock(&self.keys);
        let known = keys.get(&key).copied();
        // One that is being removed does not count.
        let known = known.and_then(|id| Some((id, self.with(id, |set| set.values.len()).ok()?)));
        match (known, get) {
            (Some(_), Get::New) => Err(Error::Exists),
            (Some((_, count)), _) if semaphores > count => Err(Error::Invalid),
            (Some((id, _)), _) => Ok(id),
            (None, Get::Existing) => Err(Error::NoEntry),
            (None, _) => {
                let id = new()?;
                keys.insert(key, id);
                Ok(id)
            }
        }
    }

    /// The value of a semaphore (`GETVAL`).
    pub(crate) fn getval(&self, id: Id, number: u16) -> Result<i32> {
        self.with(id, |set| Ok(set.values[set.check(number)?]))?
    }

    /// All values at one moment (`GETALL`).
    pub(crate) fn getall(&self, id: Id) -> Result<Vec<i32>> {
        self.with(id, |set| set.values.to_vec())
    }

    /// Sets a value (`SETVAL`); what was to be undone there is not.
    pub(crate) fn setval(&self, id: Id, number: u16, value: i32) -> Result<()> {
        self.with(id, |set| {
            let number = set.check(number)?;
            if !(0..=VALUE_MAX).contains(&value) {
                return Err(Error::Range);
            }
            set.values[number] = value;
            set.undo.values_mut().for_each(|undo| undo[number] = 0);
            set.serve();
            Ok(())
        })?
    }

    /// Sets all values (`SETALL`).
    pub(crate) fn setall(&self, id: Id, values: &[i32]) -> Result<()> {
        self.with(id, |set| {
            if values.len() != set.values.len() {
                return Err(Error::Invalid);
            }
            if values.iter().any(|value| !(0..=VALUE_MAX).contains(value)) {
                return Err(Error::Range);
            }
            set.values.copy_from_slice(values);
            set.undo.clear();
            set.serve();
            Ok(())
        })?
    }

    /// How many calls wait for a semaphore to become larger (`GETNCNT`), and to become zero
    /// (`GETZCNT`).
    pub(crate) fn waiting(&self, id: Id, number: u16) -> Result<(usize, usize)> {
        self.with(id, |set| {
            set.check(number)?;
            let waits = |is_zero: bool| {
                let blocked = set.waiting.iter().map(|waiting| waiting.blocked);
                blocked.filter(|op| op.number == number && (op.change == 0) == is_zero).count()
            };
            Ok((waits(false), waits(true)))
        })?
    }

    /// Removes a set (`IPC_RMID`). Calls that sleep in it, or have found it and not yet locked it,
    /// end with [`Error::Removed`].
    pub(crate) fn rmid(&self, id: Id) -> Result<()> {
        self.with(id, |set| {
            set.removed = true;
            for waiting in std::mem::take(&mut set.waiting) {
                waiting.sleeper.wake(Err(Error::Removed));
            }
        })?;
        lock(&self.keys).retain(|_, known| *known != id);
        self.sets.remove(id);
        Ok(())
    }

    /// Calls `f` with a set that is locked, and not removed.
    fn with<R>(&self, id: Id, f: impl FnOnce(&mut Set) -> R) -> Result<R> {
        let found = self.sets.with(id, |set| match set.removed {
            true => Err(Error::Removed),
            false => Ok(f(set)),
        });
        found.ok_or(Error::Invalid)?
    }
}

impl<S: Sets> Process<'_, S> {
    /// Does operations on the semaphores of a set, all at one moment (`semop`); sleeps until that
    /// can be.
    pub(crate) fn semop(&self, id: Id, ops: &[Op]) -> Result<()> {
        match ops.len() {
            0 => return Err(Error::Invalid),
            1..=OPERATIONS_MAX => {}
            _ => return Err(Error::TooMany),
        }
        if ops.iter().any(|op| op.undo) {
            lock(&self.undo_in).insert(id);
        }
        let sleeper = self.system.with(id, |set| {
            ops.iter().try_for_each(|op| set.check(op.number).map(drop))?;
            match set.attempt(self.number, ops)? {
                None => {
                    set.serve();
                    Ok(None)
                }
                Some(op) if op.no_wait => Err(Error::Again),
                Some(blocked) => {
                    let sleeper = Arc::new(Sleeper::default());
                    set.waiting.push_back(Waiting {
                        process: self.number,
                        ops: ops.into(),
                        blocked,
                        sleeper: Arc::clone(&sleeper),
                    });
                    Ok(Some(sleeper))
                }
            }
        })??;
        // Here the section has ended, and the set is not locked.
        sleeper.map_or(Ok(()), |sleeper| sleeper.wait())
    }

    /// One operation on one semaphore.
    pub(crate) fn op(&self, id: Id, number: u16, change: i16) -> Result<()> {
        self.semop(id, &[Op::new(number, change)])
    }
}

impl<S: Sets> Drop for Process<'_, S> {
    fn drop(&mut self) {
        for id in std::mem::take(&mut *lock(&self.undo_in)) {
            // Sets that were removed have nothing to undo.
            let _ = self.system.with(id, |set| {
                let Some(undo) = set.undo.remove(&self.number) else { return };
                for (value, add) in set.values.iter_mut().zip(undo) {
                    *value = (i64::from(*value) + add).clamp(0, i64::from(VALUE_MAX)) as i32;
                }
                set.serve();
            });
        }
    }
}
