//! Sets of CPUs.

use super::store::Store;

/// A set of CPUs, of those numbered 0 to a fixed count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mask<A: Store> {
    words: A::Of<u64>,
    cpus: usize,
    /// Members. Kept, so that "is it empty" needs no look at the words.
    len: usize,
}

impl<A: Store> Mask<A> {
    /// The empty set, of the CPUs of `store`.
    pub fn new(store: A) -> Self {
        let cpus = store.cpus();
        Self { words: store.of(cpus.div_ceil(64), 0), cpus, len: 0 }
    }

    /// How many CPUs there can be.
    pub const fn cpus(&self) -> usize {
        self.cpus
    }

    /// Whether `cpu` is a member; `false` out of range.
    pub fn contains(&self, cpu: usize) -> bool {
        cpu < self.cpus && self.words[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// Adds `cpu`, if it is in range. Returns whether it was new.
    pub fn insert(&mut self, cpu: usize) -> bool {
        let new = cpu < self.cpus && !self.contains(cpu);
        if new {
            self.words[cpu / 64] |= 1 << (cpu % 64);
            self.len += 1;
        }
        new
    }

    /// Takes `cpu` out. Returns whether it was a member.
    pub fn remove(&mut self, cpu: usize) -> bool {
        let member = self.contains(cpu);
        if member {
            self.words[cpu / 64] &= !(1 << (cpu % 64));
            self.len -= 1;
        }
        member
    }

    /// Takes every CPU out.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    /// How many members there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first member that is not before `from`.
    pub fn first_from(&self, from: usize) -> Option<usize> {
        if from >= self.cpus {
            return None;
        }
        let mut index = from / 64;
        let mut word = self.words[index] & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// The members, in order. Linear in members and in `cpus / 64`.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let mut next = 0;
        core::iter::from_fn(move || {
            let cpu = self.first_from(next)?;
            next = cpu + 1;
            Some(cpu)
        })
    }
}
