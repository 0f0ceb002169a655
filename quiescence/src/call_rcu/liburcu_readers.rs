//! Domains whose readers are not Rust's: programs that were compiled against liburcu, and read and write the words
//! of its protocol themselves, inlined.
//!
//! Such a reader owns a [`Record`], in memory of its program, in place of a slot of the registry: it *is* a slot, with
//! what liburcu's layout wants behind it. It copies a number that lies where its program thinks it is ([`Words`]), and
//! does not look at a slot's mark of attention when it leaves; it looks at `gp.futex`. All else is an ordinary
//! domain's: its grace periods and who shares them, callbacks, limits, statistics and reports.
//!
//! | readers | fences | who wakes a sleeping updater |
//! |---|---|---|
//! | [`Readers::Light`] | light: liburcu-memb, -signal | whoever leaves its outermost section while `gp.futex` is -1 |
//! | [`Readers::Full`] | full: liburcu-mb | the same |
//! | [`Readers::Qsbr`] | full, where it comes online | whoever finds its `waiting` set while `gp.futex` is -1 |
//! | [`Readers::Silent`] | light: liburcu-bp | nobody: the updater looks again, after naps |
//!
//! Use of it is for who gives C, or another language, an interface; the crate `compat` does.

use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64};

pub use crate::gp::core::foreign::{Readers, Surroundings, Words};

use crate::domain::domain::Domain;
use crate::domain::guard::Guard;
use crate::domain::kind::{AnyKind, Kind};
use crate::event::trace;
use crate::gp::core::Core;
use crate::gp::core::foreign::Links;
use crate::gp::handle::Handle;
use crate::gp::slot::{Slot, Sort};
use crate::os::fence;
use crate::process::fork;
use crate::reclaim::defer;
use crate::reclaim::local::{self, Own};
use crate::reclaim::queue::{self, Queue, Wants};

/// The updater's half of an asymmetric fence, for protocols of a program's own, hazard pointers
/// say: a full fence in every thread of the process, where it stands. The other half is a
/// compiler's fence where [`fences`](crate::fences) returns
/// [`Membarrier`](crate::Fences::Membarrier), else a sequentially consistent one. As a pair they
/// order like two of the latter.
///
/// One system call under membarrier, a few microseconds. If the kernel refuses it, which it did not
/// when the process started, the process aborts with a message: nothing else in user space can
/// replace it.
pub fn heavy_fence() {
    fence::heavy(std::iter::empty());
}

/// One thread's place as a reader: liburcu's `struct urcu_reader`, of 256 bytes. All zeroes is one that is not
/// registered. Its first word is the reader's own: what its program calls `ctr`.
#[repr(C, align(128))]
pub struct Record {
    slot: Slot,
    /// liburcu's list. Ours of all readers is elsewhere; this is the next record of the same thread, or null.
    next: AtomicPtr<Record>,
    _node: usize,
    /// QSBR: an updater sleeps until this reader has announced a quiescent state.
    waiting: AtomicI32,
    _unused: u32,
    /// 1 while the record is registered. For its own thread, which may look instead of remembering.
    registered: AtomicU32,
    _unused_too: u32,
    /// The same where QSBR's readers look, if they are compiled with liburcu's assertions.
    registered_qsbr: AtomicU32,
    _rest: [u8; 92],
}

const _: () = assert!(size_of::<Record>() == 256);
const _: () = assert!(std::mem::offset_of!(Record, waiting) == 144);
const _: () = assert!(std::mem::offset_of!(Record, registered) == 152);
const _: () = assert!(std::mem::offset_of!(Record, registered_qsbr) == 160);

impl Record {
    /// The reader's word.
    pub fn word(&self) -> &AtomicU64 {
        self.slot.word()
    }

    /// The owner, a QSBR reader, is to wake the driver at its next quiescent state.
    ///
    /// # Safety
    /// `record` is valid.
    pub(crate) unsafe fn mark_waiting(record: *const Self) {
        // SAFETY: by the contract.
        let waiting = unsafe { &raw const (*record).waiting };
        // SAFETY: as above. Relaxed: a full fence comes before, after -1 was stored, and the driver's heavy one
        // follows [FR-1].
        unsafe { &*waiting }.store(1, Relaxed);
    }

    /// Whether the record is registered: 152 bytes from its beginning, for those who look by themselves.
    pub fn is_registered(&self) -> bool {
        self.registered.load(Relaxed) != 0
    }

    fn set_registered(&self, now: bool) {
        self.registered.store(u32::from(now), Relaxed);
        self.registered_qsbr.store(u32::from(now), Relaxed);
    }

    /// Whether the reader is in no section; for QSBR, offline. For the reader's own thread.
    pub fn is_quiescent(&self) -> bool {
        self.slot.is_quiescent()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("word", self.word()).finish_non_exhaustive()
    }
}

thread_local! {
    /// The calling thread's records, one leading to the next. Without a destructor and without memory of its own, so
    /// that a signal handler may register its thread whatever it has interrupted. Relaxed everywhere: only the
    /// thread itself and its handlers look; and a handler leaves the list whole.
    static OWN: AtomicPtr<Record> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// Adds to the calling thread's records.
fn add_own(record: &Record) {
    OWN.with(|own| {
        let this = ptr::from_ref(record).cast_mut();
        let mut first = own.load(Relaxed);
        loop {
            record.next.store(first, Relaxed);
            match own.compare_exchange(first, this, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => first = now, // by a handler
            }
        }
    });
}

/// Takes it from the calling thread's records.
fn remove_own(record: &Record) {
    let this = ptr::from_ref(record).cast_mut();
    let next = record.next.load(Relaxed);
    OWN.with(|own| {
        // A handler may add at the front meanwhile; then it is not the first any more.
        if own.compare_exchange(this, next, Relaxed, Relaxed).is_ok() {
            return;
        }
        let mut place = own.load(Relaxed);
        // SAFETY: null, or in the list, so registered and valid.
        while let Some(before) = unsafe { place.as_ref() } {
            let following = before.next.load(Relaxed);
            if following == this {
                return before.next.store(next, Relaxed);
            }
            place = following;
        }
    });
}

/// The slots of the calling thread's records, of whatever domains. To be looked at right away.
pub(crate) fn own<'a>() -> impl Iterator<Item = &'a Slot> {
    let record = |place: *mut Record| -> Option<&'a Record> {
        // SAFETY: null, or in the list, so registered and valid; only the thread itself takes one out.
        unsafe { place.as_ref() }
    };
    let first = record(OWN.with(|own| own.load(Relaxed)));
    let records = std::iter::successors(first, move |one| record(one.next.load(Relaxed)));
    records.map(|one| &one.slot)
}

/// A domain of foreign readers. For a static.
#[derive(Debug)]
pub struct ForeignDomain {
    core: Core,
}

/// The kind of foreign domains.
#[derive(Clone, Copy, Debug)]
pub struct Foreign(&'static ForeignDomain);

impl ForeignDomain {
    /// A domain without readers.
    pub const fn new(name: &'static str, readers: Readers) -> Self {
        Self { core: Core::foreign(name, readers) }
    }

    /// Says where the words of its readers are, and what goes with its callbacks. The first call counts.
    ///
    /// # Safety
    /// Nobody has read in the domain yet. `words` are valid for ever.
    pub unsafe fn attach(&'static self, words: *const Words, surroundings: Surroundings) {
        // SAFETY: by the contract.
        let words = unsafe { &*words };
        // Relaxed: nobody has read yet, and whoever registers takes the registry's lock.
        words.ctr.store(self.core.gp.0.load(Relaxed), Relaxed);
        self.links().attach(words, surroundings);
        // Here, and not when somebody registers, which is to be possible anywhere.
        fork::remember(&Foreign(self).handle());
    }

    /// Makes room for so many readers, all together. Until there are more, [`register`](Self::register) allocates
    /// nothing; and never is anything allocated or freed while what it locks is locked. So a thread may register in a
    /// signal handler that has interrupted its allocator, for a domain that the handler can not have interrupted it in.
    /// [`Domain::read`] in the same domain is the exception: the first sections of Rust's own threads allocate there.
    pub fn make_room(&'static self, readers: usize) {
        self.core.make_room(readers);
    }

    fn links(&self) -> &Links {
        self.core.foreign.as_ref().expect("made so by `new`")
    }

    /// The domain: grace periods, callbacks, statistics. Sections by [`Domain::read`] are possible as well.
    pub const fn domain(&'static self) -> Domain<Foreign> {
        Domain::of(Foreign(self))
    }

    /// As [`Domain::call`], but it is never refused: at the limit it waits for room, 10 ms at most, and then goes over. So a
    /// lock that a closure takes may be held meanwhile. In a section and in a callback it does not wait.
    pub fn call(&'static self, f: impl FnOnce() + Send + 'static) {
        defer::call_within_a_tick(&Foreign(self), f);
    }

    /// Makes the queue of the calling thread's closures, if it has none: [`call`](Self::call)
    /// allocates pages of it from then on, and nothing else.
    pub fn make_queue(&'static self) {
        local::closures(&self.core, || Foreign(self).handle());
    }

    /// Whether closures and objects wait in the domain's queues: those of the calling thread, or of all.
    pub fn is_waiting(&'static self, own_only: bool) -> bool {
        if own_only && local::is_noticed_at_end() {
            self.own_queues().iter().any(|queue| !queue.is_empty())
        } else {
            self.core.queues.wants() != Wants::Nothing
        }
    }

    /// Waits until the closures and objects that wait in the domain's queues, the calling thread's or all, have run;
    /// runs them itself where nobody else does. As [`Domain::barrier`], but lanes are not waited for, and their
    /// callbacks may call it.
    ///
    /// It would wait for ever in a section of the domain, and where a queue's closure calls it: the caller sees to it
    /// that neither is so.
    pub fn wait_for_queues(&'static self, own_only: bool) {
        let me = || Own::in_domain(&self.core).me();
        // A thread that ends adds to queues that all share.
        if own_only && local::is_noticed_at_end() {
            queue::drain(&self.core, &self.own_queues(), &me, local::token());
        } else {
            self.core.queues.drain(&self.core, me, local::token());
        }
        trace::deliver();
    }

    /// Waits until the callbacks that wait in the domain's lanes have run; runs them itself where nobody attends. As
    /// [`Domain::barrier`], but closures and objects are not waited for, which may call it, as callbacks of other domains
    /// may.
    ///
    /// It would wait for ever in a section of the domain, and in a callback of one of its lanes
    /// ([`is_in_lane`](Self::is_in_lane)): the caller sees to it that neither is so.
    pub fn wait_for_lanes(&'static self) {
        let lanes = self.core.lanes.begin_barrier();
        lanes.finish(&self.core, || Own::in_domain(&self.core).me());
        trace::deliver();
    }

    /// Whether the calling thread runs callbacks of one of the domain's lanes.
    pub fn is_in_lane(&'static self) -> bool {
        self.core.lanes.are_run_here()
    }

    fn own_queues(&self) -> Vec<Arc<Queue>> {
        let own = [local::existing_objects(&self.core), local::existing_closures(&self.core)];
        own.into_iter().flatten().collect()
    }

    /// Enters the calling thread as a reader. For QSBR: offline, its word 0; it comes online by itself. Allocates
    /// only if there is no [room](Self::make_room); leaves nothing for the thread's end to do.
    ///
    /// # Safety
    /// `record` is all zeroes, or was registered by this function, in this domain, and is no longer. It stays valid
    /// until it is unregistered. Its owner follows the protocol.
    pub unsafe fn register(&'static self, record: *const Record) {
        let sort = Sort::Foreign(self.links().readers);
        assert!(self.links().words().is_some(), "quiescence: a foreign domain is not attached yet");
        // SAFETY: the slot is the first part of the record; by the contract.
        unsafe { self.core.register_at(record.cast::<Slot>(), local::token(), sort) };
        // SAFETY: by the contract.
        let record = unsafe { &*record };
        add_own(record);
        record.set_registered(true);
    }

    /// Takes the calling thread's record out.
    ///
    /// # Safety
    /// It is registered, by the calling thread, and [quiescent](Record::is_quiescent).
    pub unsafe fn unregister(&'static self, record: *const Record) {
        // SAFETY: by the contract.
        let record = unsafe { &*record };
        record.set_registered(false);
        remove_own(record);
        self.core.unregister(&record.slot);
    }
}

// SAFETY: one static.
unsafe impl AnyKind for Foreign {
    const STATIC: bool = false;

    type Section<'k> = Guard<'k, Self>;

    fn enter(&self, place: &'static Location<'static>) -> Guard<'_, Self> {
        Guard::begin(self, place)
    }

    fn core(&self) -> &Core {
        &self.0.core
    }

    fn handle(&self) -> Handle {
        Handle::Static(&self.0.core)
    }
}

// SAFETY: its readers are threads.
unsafe impl Kind for Foreign {}
