//! A value for each CPU, cache lines apart.

use std::{fmt, vec};

use crate::os::percpu;
use crate::os::user_code::{self, Site};

/// Two cache lines, since CPUs fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// A `T` for each CPU of the machine, so that threads on different CPUs do not disturb each other.
///
/// A thread may be moved to another CPU at any time, so the `T` that [`here`](Self::here) gives may
/// be used by several threads at once: what changes in it is an atomic or a lock, though one that
/// hardly ever meets another thread. For counting use [`Counter`](super::Counter), which needs no
/// atomic instruction.
///
/// ```
/// use std::sync::Mutex;
/// use quiescence::sync::PerCpu;
///
/// let free: PerCpu<Mutex<Vec<Box<[u8]>>>> = PerCpu::new(|_| Mutex::new(Vec::new()));
/// free.here().lock().unwrap().push(Box::new([0; 4096]));
/// assert_eq!(free.iter().map(|list| list.lock().unwrap().len()).sum::<usize>(), 1);
/// ```
///
/// # Cost
/// 128 bytes a CPU at least, and [`here`](Self::here) some nanoseconds. Threads beyond the CPUs
/// that were counted at first (a machine that has got more since) share those.
pub struct PerCpu<T> {
    slots: Box<[Apart<T>]>,
}

impl<T> PerCpu<T> {
    /// Calls `make` for each CPU, with its number.
    pub fn new(mut make: impl FnMut(usize) -> T) -> Self {
        let make = |cpu| Apart(user_code::run(Site::Make, || make(cpu)));
        Self { slots: (0..percpu::slots()).map(make).collect() }
    }

    /// The one of the CPU that the caller was on a moment ago.
    ///
    /// Costs a call of `sched_getcpu(3)`, which on Linux is no system call as a rule, and a
    /// division.
    #[inline]
    pub fn here(&self) -> &T {
        &self.slots[percpu::slot()].0
    }

    /// The one of that CPU, by its number as the system has it; none from [`len`](Self::len) on.
    pub fn get(&self, cpu: usize) -> Option<&T> {
        self.slots.get(cpu).map(|slot| &slot.0)
    }

    /// How many there are.
    // There is always one, so `is_empty` would be no question.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// All of them, in the order of their CPUs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.slots.iter().map(|slot| &slot.0)
    }

    /// All of them, to be changed.
    pub fn iter_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> + DoubleEndedIterator {
        self.slots.iter_mut().map(|slot| &mut slot.0)
    }
}

impl<T> IntoIterator for PerCpu<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> vec::IntoIter<T> {
        let values: Vec<T> = self.slots.into_iter().map(|slot| slot.0).collect();
        values.into_iter()
    }
}

impl<T: Default> Default for PerCpu<T> {
    fn default() -> Self {
        Self::new(|_| T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
