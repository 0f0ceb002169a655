//! Domains whose readers are not Rust's: programs that were compiled against liburcu, and read and
//! write the words of its protocol themselves, inlined. The feature `call_rcu`, which is off by
//! default.
//!
//! Such a reader owns a [`Record`], in memory of its program, in place of a slot of the registry:
//! it *is* a slot, with what liburcu's layout wants behind it. It copies a number that lies where
//! its program thinks it is ([`Words`]), and does not look at a slot's mark of attention when it
//! leaves; it looks at `gp.futex`. All else is an ordinary domain's: its grace periods and who
//! shares them, callbacks, limits, statistics and reports.
//!
//! | readers | fences | who wakes a sleeping updater |
//! |---|---|---|
//! | [`Readers::Light`] | light: liburcu-memb, -signal | the thread that leaves its outermost section while `gp.futex` is -1 |
//! | [`Readers::Full`] | full: liburcu-mb | the same |
//! | [`Readers::Qsbr`] | full, where it comes online | the thread that finds its `waiting` set while `gp.futex` is -1 |
//! | [`Readers::Silent`] | light: liburcu-bp | none: the updater polls, after naps |
//!
//! Use of it is for code that gives C, or another language, an interface; the crate `compat` does.

use std::ffi::c_void;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::gp::record::Record;
pub use crate::gp::wake::{Readers, Surroundings, Words};
pub use crate::reclaim::defer::Deferred;
pub use crate::reclaim::stream::Function as DeferredFunction;

use crate::domain::domain::Domain;
use crate::domain::guard::Guard;
use crate::domain::guard::ThreadTag;
use crate::domain::tag::DomainTag;
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::gp::record::{add_own, remove_own};
use crate::gp::slot::{ReaderKind, Slot};
use crate::gp::wake::Links;
use crate::os::sync::const_unless_loom;
use crate::os::{fence, thread};
use crate::reclaim::defer;
use crate::reclaim::domain_state::{self, DomainState, Handle};
use crate::reclaim::local;
use crate::reclaim::queues;

/// The updater's half of an asymmetric fence, for protocols of a program's own, hazard pointers
/// say: a full fence in every thread of the process, where it stands. The other half is a
/// compiler's fence where [`fences`](crate::tuning::fences) returns
/// [`Membarrier`](crate::tuning::Fences::Membarrier), else a sequentially consistent one. As a pair
/// they order like two of the latter.
///
/// One system call under membarrier, a few microseconds. If the kernel refuses it, which it did not
/// when the process started, the process aborts with a message: nothing else in user space can
/// replace it.
pub fn heavy_fence() {
    fence::heavy(std::iter::empty());
}

/// A domain of liburcu readers. For a static.
#[derive(Debug)]
pub struct LiburcuDomain {
    core: DomainState,
}

/// The kind of liburcu domains.
#[derive(Clone, Copy, Debug)]
pub struct Liburcu(&'static LiburcuDomain);

impl LiburcuDomain {
    const_unless_loom! {
        /// A domain without readers.
        pub fn new(name: &'static str, readers: Readers) -> Self {
            Self { core: DomainState::liburcu(name, readers) }
        }
    }

    /// Says where the words of its readers are, and what goes with its callbacks. The first call
    /// counts.
    ///
    /// # Safety
    /// No thread has read in the domain yet. `words` are valid for ever.
    pub unsafe fn attach(&'static self, words: *const Words, surroundings: Surroundings) {
        // SAFETY: by the contract.
        let words = unsafe { &*words };
        // Relaxed: no thread has read yet, and the thread that registers takes the registry's lock.
        words.ctr.store(self.core.grace_periods.gp_words.gp.load(Relaxed), Relaxed);
        self.links().attach(words, surroundings);
        // Here, and not when somebody registers, which is to be possible anywhere.
        domain_state::remember(&Liburcu(self).handle());
    }

    /// Makes room for so many readers, all together. Until there are more,
    /// [`register`](Self::register) allocates nothing; and never is anything allocated or freed
    /// while what it locks is locked. So a thread may register in a signal handler that has
    /// interrupted its allocator, for a domain that the handler can not have interrupted it in.
    /// [`Domain::read`] in the same domain is the exception: the first sections of Rust's own
    /// threads allocate there.
    pub fn make_room(&'static self, readers: usize) {
        self.core.grace_periods.make_room(readers);
    }

    fn links(&self) -> &Links {
        self.core.grace_periods.gp_words.liburcu.as_ref().expect("made so by `new`")
    }

    /// The domain: grace periods, callbacks, statistics. Sections by [`Domain::read`] are possible
    /// as well.
    pub const fn domain(&'static self) -> Domain<Liburcu> {
        Domain::of(Liburcu(self))
    }

    /// Has `function(argument)` called after a grace period, with those that the calling thread has
    /// deferred before in their order: by the thread itself, in
    /// [`run_deferred`](Self::run_deferred), by a barrier, or by the worker, where the thread comes
    /// to no more of them.
    ///
    /// Refused where the thread has no queue at hand, or the domain is at its limit:
    /// [`defer_in_any_case`](Self::defer_in_any_case).
    ///
    /// # Progress and cost
    /// Wait-free; a few stores into memory of the thread's own, no locked instruction.
    ///
    /// # Safety
    /// `function(argument)` may be called once, on any thread, after a grace period.
    #[inline]
    pub unsafe fn defer(
        &'static self,
        function: DeferredFunction,
        argument: *mut c_void,
    ) -> Deferred {
        // SAFETY: by the contract.
        unsafe { defer::defer(&Liburcu(self), function, argument) }
    }

    /// As [`defer`](Self::defer), but it is never refused: at the limit it calls what is ready of
    /// the thread's own, waits for room, 10 ms at most, and then goes over. So a lock that a
    /// function takes on another thread may be held meanwhile. In a section and in a callback it
    /// does neither.
    ///
    /// # Safety
    /// As for [`defer`](Self::defer).
    pub unsafe fn defer_in_any_case(
        &'static self,
        function: DeferredFunction,
        argument: *mut c_void,
    ) {
        // SAFETY: by the contract.
        unsafe { defer::defer_in_any_case(&Liburcu(self), function, argument) };
    }

    /// The part of a thread that defers, when it is due: takes a step of the grace
    /// period, and calls what is ready of its own. Waits for no reader; in a section and in a
    /// callback it calls nothing.
    pub fn run_deferred(&'static self) {
        defer::run_deferred(&Liburcu(self));
        trace::deliver();
    }

    /// Whether the calling thread is running a deferred function, of whatever domain.
    pub fn is_running_deferred() -> bool {
        defer::is_running_deferred()
    }

    /// Makes the queue of the calling thread's deferred functions, if it has none, and has it at
    /// hand: to defer allocates pages of it from then on, and what tells functions apart.
    pub fn make_queue(&'static self) {
        local::closures(&self.core, &Liburcu(self));
    }

    /// Whether closures and objects wait in the domain's queues: those of the calling thread, or of
    /// all.
    pub fn is_waiting(&'static self, own_only: bool) -> bool {
        if own_only && thread::notice_end() {
            local::own_queues(&self.core).iter().any(|queue| !queue.is_empty())
        } else {
            !self.core.queues.is_empty()
        }
    }

    /// Waits until the closures and objects that wait in the domain's queues, the calling thread's
    /// or all, have run; runs them itself where no other thread does. As [`Domain::barrier`], but
    /// callback queues are not waited for, and their callbacks may call it.
    ///
    /// It would wait for ever in a section of the domain, and where a queue's closure calls it: the
    /// caller sees to it that neither is so.
    pub fn wait_for_queues(&'static self, own_only: bool) {
        // A thread that ends adds to queues that all share.
        if own_only && thread::notice_end() {
            let own = local::own_queues(&self.core);
            queues::drain(&self.core, &own, &Me::this_thread);
        } else {
            self.core.queues.drain(&self.core, Me::this_thread);
        }
        trace::deliver();
    }

    /// Waits until the callbacks that wait in the domain's callback queues have run; runs them
    /// itself where no thread attends. As [`Domain::barrier`], but closures and objects are not
    /// waited for, which may call it, as callbacks of other domains may.
    ///
    /// It would wait for ever in a section of the domain, and in a callback of one of its callback
    /// queues ([`is_in_callback_queue`](Self::is_in_callback_queue)): the caller sees to it that
    /// neither is so.
    pub fn wait_for_callback_queues(&'static self) {
        let callback_queues = self.core.callback_queues.begin_barrier(&self.core);
        callback_queues.finish(&self.core, &self.core.callback_queues, Me::this_thread);
        trace::deliver();
    }

    /// Whether the calling thread runs callbacks of one of the domain's callback queues.
    pub fn is_in_callback_queue(&'static self) -> bool {
        self.core.callback_queues.are_run_here()
    }

    /// Waits for a full grace period, where that is done at once: the calling thread's own record
    /// is the only reader, if it is `registered`, and no other thread wants a grace period. It need
    /// not be quiescent, if it is a QSBR reader's that holds no reference here; its word stays as
    /// it is. Returns false where that is not so, or perhaps not: then nothing has been waited for.
    ///
    /// Not marked `unsafe`, but relied on: if a thread says so of a record that it does not have,
    /// or that holds a reference, objects are freed under a reader.
    pub fn synchronize_alone(&'static self, registered: bool) -> bool {
        // SAFETY: what the caller says of its record, as is asked of it above.
        unsafe { self.core.grace_periods.synchronize_alone(usize::from(registered)) }
    }

    /// Enters the calling thread as a reader. For QSBR: offline, its word 0; it comes online by
    /// itself. Allocates only if there is no [room](Self::make_room); leaves nothing for the
    /// thread's end to do.
    ///
    /// # Panics
    /// If the domain is not attached yet, or has 2^32 readers.
    ///
    /// # Safety
    /// `record` is all zeroes, or was registered by this function, in this domain, and is no
    /// longer. It stays valid until it is unregistered. Its owner follows the protocol.
    pub unsafe fn register(&'static self, record: *const Record) {
        let reader_kind = ReaderKind::Liburcu(self.links().readers);
        assert!(self.links().words().is_some(), "quiescence: a liburcu domain is not attached yet");
        // SAFETY: the slot is the first part of the record; by the contract.
        unsafe {
            self.core.grace_periods.register_at(record.cast::<Slot>(), thread::token(), reader_kind)
        };
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
        self.core.grace_periods.unregister(&record.slot);
    }
}

// SAFETY: one static.
unsafe impl DomainTag for Liburcu {
    const STATIC: bool = false;

    type Section<'k> = Guard<'k, Self>;

    fn enter(&self, location: &'static Location<'static>) -> Guard<'_, Self> {
        Guard::begin(self, location)
    }

    fn core(&self) -> &DomainState {
        &self.0.core
    }

    fn handle(&self) -> Handle {
        Handle::Static(&self.0.core)
    }
}

// SAFETY: its readers are threads.
unsafe impl ThreadTag for Liburcu {}
