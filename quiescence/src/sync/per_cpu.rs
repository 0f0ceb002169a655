//! A value for each CPU, in cache lines of its own.

use std::{fmt, vec};

use crate::os::percpu;
use crate::os::user_code::{self, Site};
use crate::reclaim::weigh::{Weigh, all, owns};

/// Two cache lines, since CPUs fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// A `T` for each CPU of the machine, so that threads on different CPUs do not disturb each other.
///
/// A thread may be moved to another CPU at any time, so several threads may use the `T` that
/// [`here`](Self::here) returns at once. What changes in it must be an atomic or a lock, which is
/// hardly ever contended. For counting use [`Counter`](super::Counter), which needs no atomic
/// instruction.
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
/// At least 128 bytes per CPU; [`here`](Self::here) takes some nanoseconds. CPUs that the machine
/// gains later share the values of the first ones.
pub struct PerCpu<T> {
    slots: Box<[Apart<T>]>,
}

impl<T> PerCpu<T> {
    /// Creates one value per CPU: calls `make` with the number of each CPU.
    pub fn new(mut make: impl FnMut(usize) -> T) -> Self {
        let make = |cpu| Apart(user_code::run(Site::Make, || make(cpu)));
        Self { slots: (0..percpu::slots()).map(make).collect() }
    }

    /// Returns the value of the CPU that the caller was running on a moment ago.
    ///
    /// Costs a division and a call of `sched_getcpu(3)`, which on Linux is usually no system call.
    #[inline]
    pub fn here(&self) -> &T {
        &self.slots[percpu::slot()].0
    }

    /// Returns the value of a CPU, by the system's CPU number; `None` from [`len`](Self::len) on.
    pub fn get(&self, cpu: usize) -> Option<&T> {
        self.slots.get(cpu).map(|slot| &slot.0)
    }

    /// The number of values.
    // There is always one, so `is_empty` would be no question.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// All values, in the order of their CPUs.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.slots.iter().map(|slot| &slot.0)
    }

    /// All values, mutably.
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

owns! {
    [T: Weigh] PerCpu<T>, true, |values| {
        size_of_val(&*values.slots).saturating_add(all(values.iter()))
    };
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
