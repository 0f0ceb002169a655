//! The readers that last: ordinary ones, nested sections, explicit handles, QSBR.
//!
//! Each looks at a block, dawdles, and looks at the same block again before its section ends. Most
//! sections are short, so that grace periods are many; some last for milliseconds, so that updaters
//! go to sleep and must be woken.

use std::thread;
use std::time::Duration;

use quiescence::tag::{DomainTag, ThreadTag};
use quiescence::{Qsbr, Reader};

use super::arena::Participant;
use super::context::ThreadContext;
use super::delays::spin;
use super::kinds::{ReaderKind, Step, Way};

/// Sections between two messages to the watchdog.
const SECTIONS_PER_BEAT: u32 = 16;

/// Sections of a handle before it is dropped and made again, on average.
const REGISTER_ONE_IN: u64 = 8;

impl<K: DomainTag> Participant<K> {
    /// Has sections until the run is over.
    pub(crate) fn sections(&self, mut section: impl FnMut()) {
        while !self.context.is_over() {
            self.context.record().begin(Step::Read);
            (0..SECTIONS_PER_BEAT).for_each(|_| section());
            // Give the CPU away between sections rather than inside of one.
            thread::yield_now();
        }
    }
}

impl<K: ThreadTag> Participant<K> {
    /// Reads until the run is over.
    pub(crate) fn read_often(&self, kind: ReaderKind) {
        // Registration and its end come often, and more cheaply than with a thread.
        let (mut reader, mut online) = (None, None);
        self.sections(|| {
            if self.context.one_in(REGISTER_ONE_IN) {
                (reader, online) = (None, None);
            }
            match kind {
                ReaderKind::Nested => self.read_nested(),
                ReaderKind::Handle => {
                    self.read_by(reader.get_or_insert_with(|| self.arena.domain.reader()));
                }
                ReaderKind::Qsbr => {
                    let before = online.take().unwrap_or_else(|| self.arena.domain.qsbr());
                    online = Some(self.read_by_qsbr(before));
                }
                _ => self.read(kind),
            }
        });
    }

    /// One section by way of the thread's registration.
    pub(crate) fn read(&self, kind: ReaderKind) {
        let guard = self.arena.domain.read();
        let Some(look) = self.look(&guard, kind) else { return };
        dawdle(&self.context);
        //~ leave-early
        self.look_again(&look, kind);
    }

    /// A section in a section: the inner one's end ends nothing, in either order of dropping.
    fn read_nested(&self) {
        let kind = ReaderKind::Nested;
        let outer = self.arena.domain.read();
        let before = self.look(&outer, kind);
        let inner = self.arena.domain.read();
        let within = self.look(&inner, kind);
        dawdle(&self.context);
        let (first, last) = if self.context.one_in(2) { (inner, outer) } else { (outer, inner) };
        drop(first);
        dawdle(&self.context);
        before.iter().chain(&within).for_each(|look| self.look_again(look, kind));
        drop(last);
    }

    /// One section of an explicit handle, now and then around one of the thread's own.
    pub(crate) fn read_by(&self, reader: &Reader<K>) {
        let kind = ReaderKind::Handle;
        let guard = reader.read();
        let Some(look) = self.look(&guard, kind) else { return };
        dawdle(&self.context);
        if self.context.one_in(8) {
            self.read(kind);
        }
        self.look_again(&look, kind);
    }

    /// One section of a QSBR reader, from one quiescent state to the next.
    pub(crate) fn read_by_qsbr(&self, mut reader: Qsbr<K>) -> Qsbr<K> {
        let kind = ReaderKind::Qsbr;
        // Several guards between two quiescent states are one section.
        let guard = reader.read();
        let first = self.look(&guard, kind);
        drop(guard);
        dawdle(&self.context);
        let guard = reader.read();
        let second = self.look(&guard, kind);
        dawdle(&self.context);
        first.iter().chain(&second).for_each(|look| self.look_again(look, kind));
        drop(guard);
        match self.context.below(64) {
            0 => {
                let offline = reader.offline();
                dawdle(&self.context);
                reader = offline.online();
            }
            1 => reader.while_offline(|| dawdle(&self.context)),
            2 => {
                self.context.record().begin(Step::Update(Way::QsbrSynchronize));
                self.update_by_qsbr(&mut reader);
                self.context.record().begin(Step::Read);
            }
            _ => reader.quiescent_state(),
        }
        reader
    }
}

/// Stays for a while: mostly not at all, seldom for milliseconds.
pub(crate) fn dawdle(context: &ThreadContext) {
    match context.below(8192) {
        0 => thread::sleep(Duration::from_micros(1000 + context.below(3000))),
        1..=4 => context.sleep(300),
        5..=40 => thread::yield_now(),
        41..=600 => spin(context.below(2000)),
        _ => {}
    }
}
