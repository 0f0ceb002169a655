//! A value for each processor, cache lines apart.

use std::fmt;

use crate::os::percpu;

/// Two cache lines, since processors fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

/// A `T` for each processor of the machine, so that threads on different processors do not disturb each other.
///
/// A thread may be moved to another processor at any time, so the `T` that [`here`](Self::here) gives may
/// be used by several threads at once: what changes in it is an atomic or a lock, though one that hardly ever
/// meets another thread. For counting use [`Counter`](super::Counter), which needs no atomic instruction.
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
/// 128 bytes a processor at least. Threads beyond the processors that were counted at first (a machine that has
/// got more since) share those.
pub struct PerCpu<T> {
    slots: Box<[Apart<T>]>,
}

impl<T> PerCpu<T> {
    /// Calls `make` for each processor, with its number.
    pub fn new(make: impl FnMut(usize) -> T) -> Self {
        Self { slots: (0..percpu::slots()).map(make).map(Apart).collect() }
    }

    /// The one of the processor that the caller was on a moment ago.
    #[inline]
    pub fn here(&self) -> &T {
        &self.slots[percpu::slot()].0
    }

    /// How many there are.
    // There is always one, so `is_empty` would be no question.
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// All of them, in the order of their processors.
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
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self.slots.into_vec().into_iter())
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

/// What was in a [`PerCpu`], in the order of the processors.
pub struct IntoIter<T>(std::vec::IntoIter<Apart<T>>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().map(|slot| slot.0)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").field("left", &self.0.len()).finish()
    }
}
