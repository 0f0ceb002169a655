//! Who attends to a callback queue: how a thread takes that part, and how it gives it back.
//!
//! **Invariant: a thread attends to a callback queue as long as it has an [`Attending`] of it.** So
//! the part is given back whatever the thread leaves by: a stop, a head that was queued twice, or a
//! panic in the code that is called after a round, or that finds a section which a callback has
//! kept. Those who wait for the part are told, and the next push finds that no thread attends.
//!
//! A thread that attends may come to a barrier of the domain, in what is called after a round or in
//! a subscriber of `tracing`. Where it is in no callback it runs the callback queue there, as a
//! visitor within its own part; else the barrier would wait for the thread itself.

use super::{Inner, QueuedTwice, Shared};
use crate::os::sync;
use crate::os::thread;

/// What a thread attends to a callback queue for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// Until it is asked to stop.
    #[default]
    Runner,
    /// A barrier, for now.
    Visitor,
}

/// The calling thread attends to a callback queue.
#[derive(Debug)]
#[must_use = "the thread attends as long as this lives"]
pub(crate) struct Attending<'a> {
    callback_queue: &'a Shared,
    /// Whether the part is to be given back: not within another one of the same thread.
    gives_back: bool,
}

impl Shared {
    /// Takes the part, unless somebody has it. A runner waits for a visitor to go.
    pub(crate) fn begin(&self, part: Part) -> Result<Option<Attending<'_>>, QueuedTwice> {
        let mut inner = sync::lock(&self.inner);
        let is_others = |inner: &Inner| ![0, thread::token()].contains(&inner.runner);
        while part == Part::Runner && is_others(&inner) && !inner.has_runner() {
            inner = self.wait(inner);
        }
        let is_here = inner.runner == thread::token() && !inner.runs;
        if part == Part::Visitor && is_here {
            return Ok(Some(Attending { callback_queue: self, gives_back: false }));
        }
        if inner.runner != 0 || part == Part::Visitor && (inner.expected || inner.ends) {
            return Ok(None);
        }
        inner.part = part;
        inner.expected = false; // also where this fails: no other is on the way
        if let Err(twice) = self.take(&mut inner) {
            let _: Result<(), QueuedTwice> = self.abandon(&mut inner); // the next push is to say so
            return Err(twice);
        }
        inner.runner = thread::token();
        Ok(Some(Attending { callback_queue: self, gives_back: true }))
    }
}

impl Attending<'_> {
    /// Leaves, if nothing is to be done. Returns whether it has left.
    pub(super) fn leave(&mut self) -> bool {
        let mut inner = sync::lock(&self.callback_queue.inner);
        let leaves = inner.waiting.is_empty() && self.callback_queue.front.0.llist.leave();
        if leaves {
            self.gives_back = false;
            self.callback_queue.let_go(&mut inner);
        }
        leaves
    }

    /// Leaves, whatever there is.
    pub(super) fn neglect(mut self) -> Result<(), QueuedTwice> {
        self.gives_back = false;
        self.give_back()
    }

    fn give_back(&self) -> Result<(), QueuedTwice> {
        let mut inner = sync::lock(&self.callback_queue.inner);
        self.callback_queue.let_go(&mut inner);
        match inner.part {
            Part::Runner => self.callback_queue.abandon(&mut inner),
            Part::Visitor => Ok(()), // what has been pushed since it looked stays
        }
    }
}

impl Shared {
    fn let_go(&self, inner: &mut Inner) {
        inner.runner = 0;
        self.tell(inner);
    }
}

impl Drop for Attending<'_> {
    fn drop(&mut self) {
        if self.gives_back {
            // What is wrong with it the next thread that attends says, or the next push.
            let _: Result<(), QueuedTwice> = self.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback_queue::{CallbackQueue, Wakes};
    use crate::domain::domain::Domain;

    /// It was expected once more, for ever: when it had gone, barriers waited for it.
    #[test]
    fn a_runner_that_attends_is_not_expected() {
        let callback_queue = CallbackQueue::new(&Domain::new(), Wakes::Runner);
        let attending = callback_queue.shared.begin(Part::Runner).unwrap();
        callback_queue.expect();
        drop(attending);
        let visits = || callback_queue.shared.begin(Part::Visitor).unwrap().is_some();
        assert!(visits(), "a barrier leaves it to a thread that does not come");
        let visiting = callback_queue.shared.begin(Part::Visitor).unwrap();
        callback_queue.expect();
        assert!(!callback_queue.is_attended());
        drop(visiting);
        assert!(!visits(), "another barrier comes before the thread that does");
    }
}
