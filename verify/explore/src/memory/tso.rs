//! Total store order, as on x86: one memory, and a FIFO store buffer a thread.
//!
//! A load takes the newest of the thread's own buffered stores, else the memory's value. A full
//! fence or a locked instruction drains the thread's own buffer. The heavy fence drains the
//! caller's and then that of each registered reader, each at a moment of its own. Stores, loads and
//! loads after loads keep their order, so acquire and release cost and mean nothing.

use core::sync::atomic::Ordering;

use super::{LOCATIONS, Layout, Location, Lock, Memory};
use crate::choice::Choice;

/// Memory and store buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tso {
    memory: [u64; LOCATIONS],
    buffers: Vec<Vec<(Location, u64)>>,
}

impl Tso {
    fn drain_all(&mut self, thread: usize) {
        for (at, value) in self.buffers[thread].drain(..) {
            self.memory[at.index()] = value;
        }
    }

    fn look(&self, thread: usize, at: Location) -> u64 {
        let own = self.buffers[thread].iter().rev().find(|(location, _)| *location == at);
        own.map_or(self.memory[at.index()], |(_, value)| *value)
    }
}

impl Memory for Tso {
    fn new(layout: &Layout) -> Self {
        Self { memory: layout.initial, buffers: vec![Vec::new(); layout.threads] }
    }

    fn load(&mut self, me: usize, at: Location, _: Ordering, _: &mut Choice) -> u64 {
        self.look(me, at)
    }

    fn store(&mut self, me: usize, at: Location, value: u64, _: Ordering) {
        self.buffers[me].push((at, value));
    }

    fn update(&mut self, me: usize, at: Location, _: Ordering, f: impl Fn(u64) -> u64) -> u64 {
        self.drain_all(me);
        let before = self.memory[at.index()];
        self.memory[at.index()] = f(before);
        before
    }

    fn fence(&mut self, me: usize) {
        self.drain_all(me);
    }

    fn lock(&mut self, me: usize, _: Lock) {
        self.drain_all(me); // a locked instruction
    }

    fn unlock(&mut self, me: usize, _: Lock) {
        self.drain_all(me); // std's unlock is a swap, a locked instruction too
    }

    fn system_call(&mut self, me: usize) {
        self.drain_all(me);
    }

    fn newest(&self, at: Location) -> u64 {
        self.memory[at.index()]
    }

    fn may_load(&self, me: usize, at: Location, wanted: impl Fn(u64) -> bool) -> bool {
        wanted(self.look(me, at))
    }

    fn is_quiet(&self) -> bool {
        self.buffers.iter().all(Vec::is_empty)
    }

    fn drain(&mut self, me: usize) -> Option<(Location, u64)> {
        if self.buffers[me].is_empty() {
            return None;
        }
        let (at, value) = self.buffers[me].remove(0);
        self.memory[at.index()] = value;
        Some((at, value))
    }

    // Of objects nothing need be known: stores become visible in order, and loads are done in
    // order. The thread that sees a pointer sees what was written before it, and a read is over
    // when its step is.
}
