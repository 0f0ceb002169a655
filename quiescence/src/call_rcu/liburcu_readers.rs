//! Domains whose readers are not Rust code: programs compiled against liburcu, which read and write
//! the words of its protocol in inlined code. Requires the feature `call_rcu`, which is off by
//! default.
//!
//! Such a reader owns a [`Record`], in its program's memory, instead of a slot of the registry. The
//! record *is* a slot, followed by what liburcu's layout requires. The reader copies a number from
//! the place where its program expects it ([`Words`]). When it leaves a section, it does not check
//! a slot's attention mark, but `gp.futex`. Everything else is as in any domain: grace periods and
//! sharing them, callbacks, limits, statistics and reports.
//!
//! | readers | fences | who wakes a sleeping updater |
//! |---|---|---|
//! | [`Readers::Light`] | light: liburcu-memb, -signal | the thread that leaves its outermost section while `gp.futex` is -1 |
//! | [`Readers::Full`] | full: liburcu-mb | the same |
//! | [`Readers::Qsbr`] | full, where it comes online | the thread that finds its `waiting` set while `gp.futex` is -1 |
//! | [`Readers::Silent`] | light: liburcu-bp | none: the updater polls, after naps |
//!
//! For code that provides an interface to C or another language; the crate `compat` uses it.

use std::ffi::c_void;
use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

pub use crate::gp::links::{Readers, Surroundings, Words};
pub use crate::gp::record::Record;
pub use crate::reclaim::defer::Deferred;
pub use crate::reclaim::stream::Function as DeferredFunction;

use crate::domain::domain::Domain;
use crate::domain::guard::Guard;
use crate::domain::guard::ThreadTag;
use crate::domain::tag::DomainTag;
use crate::event::trace;
use crate::gp::grace_periods::Me;
use crate::gp::links::Links;
use crate::gp::record::{add_own, remove_own};
use crate::gp::slot::{ReaderKind, Slot};
use crate::os::sync::const_unless_loom;
use crate::os::{fence, thread};
use crate::reclaim::domain_state::{self, DomainState, Handle, Named};
use crate::reclaim::thread_queue::Contents;
use crate::reclaim::{defer, local};

/// The updater's half of an asymmetric fence, for protocols of the program's own such as hazard
/// pointers: a full fence in every thread of the process, wherever it is. The other half is a
/// compiler fence if [`fences`](crate::tuning::fences) returns
/// [`Membarrier`](crate::tuning::Fences::Membarrier), else a sequentially consistent fence. The
/// pair orders like two sequentially consistent fences.
///
/// With membarrier this is one system call, which takes a few microseconds. If the kernel refuses
/// it, although it did not when the process started, the process aborts with a message: nothing
/// else in user space can replace it.
pub fn heavy_fence() {
    fence::heavy(std::iter::empty());
}

/// Leaves what the calling thread has in all domains, as the drop of its thread-locals does: for
/// the destructor of a key (`pthread_key_create`), since others may use domains anew after that.
///
/// # Safety
/// It is called outside of any function of the library, and of what one calls.
pub unsafe fn leave_thread() {
    // SAFETY: the caller's.
    unsafe { local::leave_thread(defer::orphan) };
}

#[doc(hidden)] // for `compat`, as is the module below
pub use grace::vain::Vain;

/// What `compat` asks of the system as the library does. The futex is the kernel's: its twin has a
/// lock, which a thread that forks holds.
#[doc(hidden)]
pub mod system {
    #[cfg(target_os = "linux")]
    pub use crate::os::calls::{futex_wait, futex_wake, keeping_errno};
    pub use crate::os::environment::{complain, say, with};
    #[cfg(all(unix, not(miri)))]
    pub use crate::os::signals::{block, restore, without};
}

/// A domain of liburcu readers. For a static.
#[derive(Debug)]
pub struct LiburcuDomain {
    core: DomainState,
}

/// The tag of liburcu domains.
#[derive(Clone, Copy, Debug)]
pub struct Liburcu(&'static LiburcuDomain);

impl LiburcuDomain {
    const_unless_loom! {
        /// Creates a domain without readers.
        pub fn new(name: &'static str, readers: Readers) -> Self {
            let mut core = DomainState::declared(name);
            core.grace_periods.make_liburcu(readers);
            Self { core }
        }
    }

    /// Sets where the words of its readers are, and the surroundings of its callbacks. Only the
    /// first call has an effect.
    ///
    /// # Safety
    /// No thread has read in the domain yet. `words` are valid forever.
    pub unsafe fn attach(&'static self, words: *const Words, surroundings: Surroundings) {
        // SAFETY: by the contract.
        let words = unsafe { &*words };
        // Relaxed: no thread has read yet, and the thread that registers takes the registry's lock.
        words.ctr.store(self.core.grace_periods.gp_words.gp.load(Relaxed), Relaxed);
        self.links().attach(words, surroundings);
        // Here, and not when somebody registers, which is to be possible anywhere.
        domain_state::remember(&Liburcu(self).handle());
    }

    /// Makes room for this many readers in total. Until there are more,
    /// [`register`](Self::register) allocates nothing, and nothing is ever allocated or freed while
    /// the locks that it takes are held. So a thread may register in a signal handler that has
    /// interrupted its allocator, if the handler cannot have interrupted this domain's code.
    /// [`Domain::read`] in the same domain is the exception: the first sections of Rust threads
    /// allocate there.
    pub fn make_room(&'static self, readers: usize) {
        self.core.grace_periods.make_room(readers);
    }

    fn links(&self) -> &Links {
        self.core.grace_periods.gp_words.liburcu.as_ref().expect("made so by `new`")
    }

    /// The domain: grace periods, callbacks, statistics. Sections begun with [`Domain::read`] are
    /// possible as well.
    pub const fn domain(&'static self) -> Domain<Liburcu> {
        Domain::of(Liburcu(self))
    }

    /// Queues `function(argument)` to be called after a grace period, in order with the functions
    /// that the calling thread has deferred before: by the thread itself, in
    /// [`run_deferred`](Self::run_deferred), by a barrier, or by the worker if the thread runs no
    /// more of them.
    ///
    /// Refused if the thread has no queue at hand, or if the domain is at its limit: then use
    /// [`defer_in_any_case`](Self::defer_in_any_case).
    ///
    /// # Progress and cost
    /// Wait-free: a few stores to the thread's own memory, no locked instruction.
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

    /// Like [`defer`](Self::defer), but never refused. At the limit it calls the thread's own
    /// functions that are ready, waits for room for at most 10 ms, and then exceeds the limit. So
    /// the caller may hold a lock that a function on another thread takes. In a section and in a
    /// callback it neither calls functions nor waits.
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

    /// The part of deferral that a thread does when it is due: takes a step of the grace period,
    /// and calls its own functions that are ready. Waits for no reader; in a section and in a
    /// callback it calls nothing.
    pub fn run_deferred(&'static self) {
        defer::run_deferred(&Liburcu(self));
        trace::deliver();
    }

    /// Whether the calling thread is running a deferred function, of any domain.
    pub fn is_running_deferred() -> bool {
        defer::is_running_deferred()
    }

    /// Creates the queue of the calling thread's deferred functions, if it has none, and keeps it
    /// at hand. From then on, deferring allocates only pages of the queue, and what distinguishes
    /// functions.
    pub fn make_queue(&'static self) {
        local::queue(&self.core, &Liburcu(self), Contents::Closures);
    }

    /// Whether closures and objects are queued in the domain: those of the calling thread, or of
    /// all threads.
    pub fn is_waiting(&'static self, own_only: bool) -> bool {
        let own_only = own_only && thread::notice_end(); // one that ends adds to shared queues
        !self.core.queues.is_empty(own_only)
    }

    /// Waits until the closures and objects that are queued in the domain, by the calling thread or
    /// by all, have run; runs them itself if no other thread does. Like [`Domain::barrier`], but
    /// does not wait for callback queues, and their callbacks may call it.
    ///
    /// It deadlocks in a section of the domain, and if a queue's closure calls it: the caller must
    /// ensure that neither is the case.
    pub fn wait_for_queues(&'static self, own_only: bool) {
        let own_only = own_only && thread::notice_end(); // as in `is_waiting`
        self.core.queues.drain(&self.core, own_only, Me::this_thread);
        trace::deliver();
    }

    /// Waits until the callbacks in the domain's callback queues have run; runs them itself if no
    /// thread attends. Like [`Domain::barrier`], but does not wait for closures and objects, which
    /// may call it, as may callbacks of other domains.
    ///
    /// It deadlocks in a section of the domain, and in a callback of one of its callback queues
    /// ([`is_in_callback_queue`](Self::is_in_callback_queue)): the caller must ensure that neither
    /// is the case.
    pub fn wait_for_callback_queues(&'static self) {
        let callback_queues = self.core.callback_queues.begin_barrier();
        callback_queues.finish(&self.core, Me::this_thread);
        trace::deliver();
    }

    /// Whether the calling thread is running callbacks of one of the domain's callback queues.
    pub fn is_in_callback_queue(&'static self) -> bool {
        self.core.callback_queues.are_run_here()
    }

    /// Waits for a full grace period if that is possible at once: if the calling thread's own
    /// record is the only reader (if it is `registered`), and no other thread wants a grace period.
    /// The record need not be quiescent, if it belongs to a QSBR reader that holds no reference
    /// here; its word does not change. Returns `false` if this is not the case, or perhaps not:
    /// then it has waited for nothing.
    ///
    /// ```compile_fail,E0133
    /// # use quiescence::liburcu_readers::{LiburcuDomain, Readers};
    /// static DOMAIN: LiburcuDomain = LiburcuDomain::new("example", Readers::Qsbr);
    /// let domain = DOMAIN.domain();
    /// let guard = domain.read();
    /// DOMAIN.synchronize_alone(true); // a grace period that does not wait for `guard`
    /// ```
    ///
    /// # Safety
    /// If `registered`, the calling thread has a record that is registered in this domain, and
    /// holds no reference by it. A section of [`Domain::read`] is no such record.
    pub unsafe fn synchronize_alone(&'static self, registered: bool) -> bool {
        // SAFETY: by the contract.
        unsafe { self.core.grace_periods.synchronize_alone(usize::from(registered)) }
    }

    /// Registers the calling thread as a reader. A QSBR reader is offline, with its word 0, and
    /// comes online by itself. Allocates only if there is no [room](Self::make_room). The end of
    /// the thread has nothing to clean up.
    ///
    /// # Panics
    /// If the domain is not attached yet, or has 2^32 readers.
    ///
    /// # Safety
    /// `record` is all zeroes, or was registered by this function in this domain and has been
    /// unregistered. It stays valid until it is unregistered. Its owner follows the protocol.
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

    /// Unregisters the calling thread's record.
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

impl Named for Liburcu {
    fn core(&self) -> &DomainState {
        &self.0.core
    }

    fn handle(&self) -> Handle {
        Handle::Static(&self.0.core)
    }
}

// SAFETY: one static.
unsafe impl DomainTag for Liburcu {
    const STATIC: bool = false;

    type Section<'k> = Guard<'k, Self>;

    fn enter(&self, location: &'static Location<'static>) -> Guard<'_, Self> {
        Guard::begin(self, location)
    }
}

// SAFETY: its readers are threads.
unsafe impl ThreadTag for Liburcu {}
