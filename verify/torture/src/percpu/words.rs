//! Values of several words, copied without a lock: snapshots (restartable reads), sequence locks
//! and latches. Words must belong together, and no update may be lost.
//!
//! The words of a value follow from the first one, its *serial*, which each update increments. So
//! a reader finds a value that is torn, and one that is older than what it knows to be there.

use std::array;
use std::hint;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use quiescence::cell::Snapshot;
use quiescence::sync::{Latch, SeqLock};

use super::{FaultKind, Fixture, Operation, ThreadContext, spin};
use crate::random::scramble;

/// Words of the values: a few, and so many that a copy takes a while.
const FEW: usize = 4;
const MANY: usize = 768;

/// The words that go with a serial.
fn words<const N: usize>(serial: u64) -> [u64; N] {
    array::from_fn(|i| if i == 0 { serial } else { word(serial, i) })
}

fn word(serial: u64, i: usize) -> u64 {
    scramble(serial.wrapping_mul(31).wrapping_add(i as u64))
}

fn expect_whole<const N: usize>(context: &ThreadContext, what: &str, value: &[u64; N]) {
    let serial = value[0];
    let is_whole = (1..N).all(|i| value[i] == word(serial, i));
    context.expect(is_whole, FaultKind::Torn, what, || {
        format!("not all of {N} words are those of {serial:#x}")
    });
}

/// What an update makes of a value.
type Next<const N: usize> = fn([u64; N]) -> [u64; N];

/// A place of so many words, whose serial each update increments.
struct Chain<P, const N: usize> {
    name: &'static str,
    place: P,
    read: fn(&P, &ThreadContext) -> Option<[u64; N]>,
    /// Gives the value that was replaced.
    update: fn(&P, Next<N>) -> [u64; N],
    /// A serial that was reached, by updates that have returned.
    reached: AtomicU64,
    updates: AtomicU64,
}

/// What is called so, and how it is read.
macro_rules! chain {
    ($place:ident, $read:ident) => {
        chain!($place, |place, _| Some(place.$read()))
    };
    ($place:ident, $read:expr) => {
        Chain {
            name: stringify!($place),
            place: $place::new(words(0)),
            read: $read,
            update: |place, next| place.update(next),
            reached: AtomicU64::new(0),
            updates: AtomicU64::new(0),
        }
    };
}

impl<P, const N: usize> Chain<P, N> {
    /// Reads it, after this thread has read the serial `last`.
    fn read(&self, context: &ThreadContext, last: &mut u64) {
        // Acquire: pairs with the Release in `reach`; what had been reached then is there.
        let known = self.reached.load(Acquire).max(*last);
        let Some(value) = (self.read)(hint::black_box(&self.place), context) else { return };
        expect_whole(context, self.name, &value);
        context.expect(value[0] >= known, FaultKind::Torn, self.name, || {
            format!("value {} was read after {known} had been written", value[0])
        });
        *last = value[0];
    }

    fn update(&self) {
        let old = (self.update)(&self.place, |old| words(old[0] + 1));
        self.reach(old[0] + 1, 1);
    }

    /// So many updates have returned, by which this serial was reached.
    fn reach(&self, serial: u64, updates: u64) {
        self.updates.fetch_add(updates, Relaxed);
        // Release: pairs with the Acquire in `read`.
        self.reached.fetch_max(serial, Release);
    }

    /// When all threads have ended: looks for updates that are lost.
    fn close(&self, context: &ThreadContext) {
        let (value, updates) = ((self.read)(&self.place, context), self.updates.load(Relaxed));
        let serial = value.map(|value| value[0]);
        context.equal(FaultKind::Sum, self.name, "serial", serial, Some(updates));
    }
}

/// Has bytes between its fields that are no thread's.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    low: u8,
    serial: u64,
    check: u16,
}

impl Gaps {
    fn new(serial: u64) -> Self {
        Self { low: serial as u8, serial, check: word(serial, 1) as u16 }
    }

    fn is_whole(self) -> bool {
        let Self { low, check, .. } = Self::new(self.serial);
        (self.low, self.check) == (low, check)
    }
}

/// Snapshots.
struct Snapshots {
    few: Chain<Snapshot<[u64; FEW]>, FEW>,
    /// What was put there, less what was taken out and what is there: nothing.
    many: Snapshot<[u64; MANY]>,
    balance: AtomicU64,
    gaps: Snapshot<Gaps>,
}

/// Threads that read and replace snapshots.
pub(crate) fn cast_snapshots(fixture: &mut Fixture, threads: usize) {
    let snapshots = Snapshots {
        few: chain!(Snapshot, load),
        many: Snapshot::new(words(0)),
        balance: AtomicU64::new(0),
        gaps: Snapshot::new(Gaps::new(0)),
    };
    fixture.parts(
        true,
        snapshots,
        &[
            (threads, "reader of snapshots", Snapshots::load),
            (2, "updater of snapshots", Snapshots::store),
        ],
        Snapshots::close,
    );
}

impl Snapshots {
    /// Loads until the run is over.
    fn load(&self, context: &ThreadContext) {
        let mut last = 0;
        context.repeat(Operation::SnapshotLoad, || {
            self.few.read(context, &mut last);
            if context.one_in(4) {
                expect_whole(context, "Snapshot", &hint::black_box(&self.many).load());
            }
            context.expect(self.gaps.load().is_whole(), FaultKind::Torn, "Snapshot", || {
                "fields with gaps between them do not belong together".to_owned()
            });
        });
    }

    /// Replaces snapshots until the run is over.
    fn store(&self, context: &ThreadContext) {
        context.turns(Operation::SnapshotStore, || match context.below(4) {
            0 => {
                context.did(Operation::SnapshotUpdate);
                self.few.update();
            }
            1 => {
                context.did(Operation::SnapshotStore);
                self.gaps.store(Gaps::new(context.next()));
            }
            _ => {
                context.did(Operation::SnapshotSwap);
                let new = context.next();
                let old = self.many.swap(words(new));
                expect_whole(context, "Snapshot", &old);
                self.balance.fetch_add(new.wrapping_sub(old[0]), Relaxed);
            }
        });
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        self.few.close(context);
        let (many, balance) = (self.many.load()[0], self.balance.load(Relaxed));
        context.equal(FaultKind::Sum, "Snapshot", "sum of swaps", many, balance);
    }
}

/// Sequence locks and latches.
struct Sequences {
    few: Chain<SeqLock<[u64; FEW]>, FEW>,
    many: Chain<SeqLock<[u64; MANY]>, MANY>,
    latch: Chain<Latch<[u64; FEW]>, FEW>,
    many_latch: Chain<Latch<[u64; MANY]>, MANY>,
}

/// Threads that read and write sequence locks and latches.
pub(crate) fn cast_sequences(fixture: &mut Fixture, threads: usize) {
    let sequences = Sequences {
        few: chain!(SeqLock, |lock, context| match context.below(8) {
            0 => lock.try_read(),
            _ => Some(lock.read()),
        }),
        many: chain!(SeqLock, read),
        latch: chain!(Latch, read),
        many_latch: chain!(Latch, read),
    };
    fixture.parts(
        true,
        sequences,
        &[
            (threads, "reader of sequence locks and latches", Sequences::read),
            (3, "writer of sequence locks and latches", Sequences::write),
        ],
        Sequences::close,
    );
}

impl Sequences {
    /// Reads until the run is over.
    fn read(&self, context: &ThreadContext) {
        let [mut few, mut many, mut latch, mut many_latch] = [0; 4];
        context.repeat(Operation::SeqRead, || {
            self.few.read(context, &mut few);
            self.latch.read(context, &mut latch);
            context.ledger.operations.add(Operation::LatchRead, 1);
            if context.one_in(4) {
                self.many.read(context, &mut many);
                self.many_latch.read(context, &mut many_latch);
            }
        });
    }

    /// Writes until the run is over.
    fn write(&self, context: &ThreadContext) {
        context.turns(Operation::SeqWrite, || match context.below(8) {
            0 => self.set(context),
            1 => self.many.update(),
            2 => self.many_latch.update(),
            3..=5 => {
                self.latch.update();
                context.did(Operation::LatchWrite);
            }
            _ => {
                self.few.update();
                context.did(Operation::SeqWrite);
            }
        });
    }

    /// Sets some values under the lock.
    fn set(&self, context: &ThreadContext) {
        let mut guard = self.few.place.lock();
        let before = guard[0];
        for _ in 0..context.below(4) {
            let serial = guard[0] + 1;
            guard.set(words(serial));
            context.did(Operation::SeqWrite);
            spin(context.below(200));
        }
        // What is set is reached when the lock is let go.
        let serial = guard[0];
        drop(guard);
        self.few.reach(serial, serial - before);
    }

    /// When all threads have ended: looks for what is lost.
    fn close(&self, context: &ThreadContext) {
        self.few.close(context);
        self.many.close(context);
        self.latch.close(context);
        self.many_latch.close(context);
    }
}
