//! Threads that are moved from CPU to CPU, and interrupted by signals, at random and all the time.
//!
//! Either has the kernel begin a restartable sequence anew; and a thread that has been moved ends
//! on one CPU what it began on another. After rcutorture's shuffler (`kernel/torture.c`). It
//! touches threads that have joined, and no others.

use std::io;
use std::sync::{Arc, Mutex};

use nix::sys::pthread::{Pthread, pthread_kill, pthread_self};
use nix::sys::signal::Signal;
use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use signal_hook::consts::SIGUSR2;
use signal_hook::flag;

use crate::context::ThreadContext;
use crate::kinds::{FaultKind, Operation};
use crate::pool::lock;

/// The longest time between two moves, and between two signals.
const MOVE_MAX_US: u64 = 600;
const SIGNAL_MAX_US: u64 = 200;

/// The threads, and where all of them may run in the end.
pub(crate) struct Shuffler {
    members: Mutex<Vec<Member>>,
    home: CpuSet,
    cpus: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    thread: Pid,
    handle: Pthread,
}

/// A thread's membership; it ends, and the thread is let go, when this is dropped.
pub(crate) struct Stay {
    shuffler: Arc<Shuffler>,
    member: Member,
}

impl Shuffler {
    /// Of the CPUs that the caller may run on.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let home = sched_getaffinity(None)?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| home.is_set(cpu)).collect();
        Ok(Arc::new(Self { members: Mutex::default(), home, cpus }))
    }

    /// The calling thread joins.
    pub(crate) fn join(self: &Arc<Self>) -> Stay {
        let member = Member { thread: gettid(), handle: pthread_self() };
        lock(&self.members).push(member);
        Stay { shuffler: Arc::clone(self), member }
    }

    /// Moves threads until the run is over; each goes home when it leaves.
    pub(crate) fn shuffle(&self, context: &ThreadContext) {
        self.disturb(context, Operation::Shuffled, MOVE_MAX_US, |member| {
            // It fails where CPUs have been taken from the process meanwhile.
            sched_setaffinity(Some(member.thread), &self.draw(context)).is_ok()
        });
    }

    /// Sends signals until the run is over.
    pub(crate) fn storm(&self, context: &ThreadContext) {
        // The handler sets what no thread reads.
        if let Err(error) = flag::register(SIGUSR2, Arc::default()) {
            return context.fault(FaultKind::Process, "", || {
                format!("no handler can be had for a signal: {error}")
            });
        }
        self.disturb(context, Operation::Signalled, SIGNAL_MAX_US, |member| {
            pthread_kill(member.handle, Signal::SIGUSR2).is_ok()
        });
    }

    /// Does something to one thread after the other, until the run is over.
    fn disturb(
        &self,
        context: &ThreadContext,
        operation: Operation,
        pause_max_us: u64,
        mut f: impl FnMut(&Member) -> bool,
    ) {
        context.turns(operation, || {
            context.ledger.operations.add(operation, u64::from(self.with_one(context, &mut f)));
            context.sleep(pause_max_us);
        });
    }

    /// Under the lock: a member that has left may be no thread any more.
    fn with_one(&self, context: &ThreadContext, f: impl FnOnce(&Member) -> bool) -> bool {
        let members = lock(&self.members);
        match members.len() as u64 {
            0 => false,
            count => f(&members[context.below(count) as usize]),
        }
    }

    /// One CPU, as a rule, or some.
    fn draw(&self, context: &ThreadContext) -> CpuSet {
        let mut places = CpuSet::new();
        let count = if context.one_in(4) { context.below(self.cpus.len() as u64) } else { 0 };
        (0..=count).for_each(|_| places.set(*context.pick(&self.cpus)));
        places
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        lock(&self.shuffler.members).retain(|member| *member != self.member);
        // It may fail where `home` has changed; then the thread stays where it is, and ends.
        let _ = sched_setaffinity(None, &self.shuffler.home);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::tests::context;

    #[test]
    fn members_are_moved_and_go_home() {
        let shuffler = Shuffler::new().expect("the system says where a thread may run");
        let context = context();
        let stay = shuffler.join();
        let members = lock(&shuffler.members).clone();
        assert_eq!(members.len(), 1);
        for _ in 0..100 {
            let places = shuffler.draw(&context);
            assert!((1..=shuffler.cpus.len() as u32).contains(&places.count()));
            assert!(shuffler.with_one(&context, |member| {
                sched_setaffinity(Some(member.thread), &places).is_ok()
            }));
            assert_eq!(sched_getaffinity(None), Ok(places));
        }
        drop(stay);
        assert_eq!(sched_getaffinity(None), Ok(shuffler.home));
        assert!(!shuffler.with_one(&context, |_| true), "nobody is left");
        context.ledger.stop();
        shuffler.shuffle(&context);
    }
}
