//! Calls of `semop` on semaphores of each thread's own, in the two forms of the example
//! `semaphores`: the micro-benchmark of the paper of 2003.

use quiescence::collections::Id;

use super::chapters::random::Random;
use super::semaphores::{Get, PRIVATE, Semaphores, Sets};

/// Sets that a thread uses, and threads that do not share any.
const SETS: usize = 16;
const THREADS: usize = 64;

/// Semaphores, and the ids of their sets.
pub(super) struct System<S: Sets> {
    semaphores: Semaphores<S>,
    ids: Vec<Id>,
}

impl<S: Sets> System<S> {
    pub(super) fn new() -> Self {
        let semaphores = Semaphores::new();
        let new = |_| semaphores.semget(PRIVATE, 1, Get::OrNew).expect("a new one");
        let ids = (0..SETS * THREADS).map(new).collect();
        Self { semaphores, ids }
    }

    /// Adds one to semaphores, and takes it away; the sum of their numbers.
    pub(super) fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let process = self.semaphores.process();
        let mut random = Random::new(thread, seed);
        let (mut sum, mut last) = (0, 0);
        for operation in 0..operations {
            let is_up = operation % 2 == 0;
            if is_up {
                last = random.below(SETS);
            }
            let id = self.ids[thread % THREADS * SETS + last];
            // It was one more before it becomes one less: no thread waits.
            process.op(id, 0, if is_up { 1 } else { -1 }).expect("it is there");
            sum += last as u64 + 1;
        }
        if operations % 2 == 1 {
            let id = self.ids[thread % THREADS * SETS + last];
            process.op(id, 0, -1).expect("it is there");
        }
        sum
    }
}
