//! Threads that come and go: registration and its end, beside grace periods in progress.
//!
//! Some read for the first time inside the destructor of a thread-local, when the library's own
//! record of the thread may be gone already; some leave objects behind that no other thread
//! retires.

use std::cell::RefCell;
use std::thread;

use quiescence::tag::ThreadTag;

use super::arena::Participant;
use super::kinds::{ReaderKind, Step, Way};

/// Sections of such a thread.
const SECTIONS: u64 = 64;

thread_local! {
    static LAST_WORDS: RefCell<Option<LastWords>> = const { RefCell::new(None) };
}

/// Runs a function when the thread ends.
struct LastWords(Option<Box<dyn FnOnce()>>);

impl Drop for LastWords {
    fn drop(&mut self) {
        if let Some(speak) = self.0.take() {
            speak();
        }
    }
}

/// Has `last_words` called when the calling thread ends, by the destructor of a thread-local.
pub(crate) fn at_the_end(last_words: impl FnOnce() + 'static) {
    LAST_WORDS.set(Some(LastWords(Some(Box::new(last_words)))));
}

impl<K: ThreadTag> Participant<K> {
    /// Starts one thread after another until the run is over.
    pub(crate) fn pass(&self) {
        while !self.context.is_over() {
            self.context.record().begin(Step::WaitForThread);
            let of_child = self.clone();
            match self.context.spawn("passing", move |_| of_child.live_briefly()) {
                Some(child) => drop(self.context.join(child, self.arena.name)),
                None => thread::yield_now(),
            }
        }
    }

    /// The life of such a thread.
    fn live_briefly(&self) {
        let sections = 1 + self.context.below(SECTIONS);
        let read = || (0..sections).for_each(|_| self.read(ReaderKind::Passing));
        match self.context.below(8) {
            0 | 1 => read(),
            2 => {
                let reader = self.arena.domain.reader();
                (0..sections).for_each(|_| self.read_by(&reader));
            }
            3 => {
                let reader = self.arena.domain.qsbr();
                drop((0..sections).fold(reader, |reader, _| self.read_by_qsbr(reader)));
            }
            // Nothing of the library is touched before the destructor.
            4 | 5 => self.read_at_the_end(sections),
            // The thread is registered before; whose destructor runs first is the system's choice.
            6 if self.context.one_in(2) => {
                read();
                self.read_at_the_end(sections);
            }
            6 => {
                self.read_at_the_end(sections);
                read();
            }
            _ => (0..1 + self.context.below(20)).for_each(|_| self.retire(Way::Passing)),
        }
    }

    fn read_at_the_end(&self, sections: u64) {
        let own = self.clone();
        at_the_end(move || {
            (0..sections).for_each(|_| own.read(ReaderKind::Destructor));
            if own.context.one_in(4) {
                own.retire(Way::Passing);
            }
        });
    }
}
