//! `fork`: the child has the forking thread only, and finds every domain consistent.
//!
//! Before the fork every lock of every domain is taken, in the order of their ranks
//! (`os/lock_rank.rs`), so that no other thread is in the middle of a change when the memory is
//! copied. The parent releases them. The child first repairs what the missing threads left: their
//! readers are unregistered, a grace period that one of them drove starts again from its fence, and
//! their queues become orphans that the next `barrier` or the worker runs.

use std::cell::UnsafeCell;
use std::sync::Once;

use crate::collections::hash_table_worker;
use crate::gp::grace_periods;
use crate::gp::tuning;
use crate::os::{clock, exit, fence, forking, futex, percpu, thread};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::Handle;
use crate::reclaim::head_queue;
use crate::reclaim::thread_queue;
use crate::reclaim::worker;
use crate::report::stats_server;
use crate::rseq;
use crate::srcu::track;

/// Complete once the handlers below are installed.
static INSTALL: Once = Once::new();

/// Installs handlers that the system calls at every fork and at the end of the process, if they are
/// not installed yet. Called when a domain or table is used for the first time.
pub(crate) fn watch() {
    INSTALL.call_once(|| {
        imp::install();
        assert!(exit::at_exit(super::end::finish), "quiescence: atexit fails: out of memory");
    });
}

/// Everything that is locked while the memory is copied. The locks are released in the order of the
/// fields, from the highest rank to the lowest.
struct Held {
    /// `None` in the child before it repairs anything, since the repairs wake sleepers.
    futex: Option<futex::Held>,
    reporter: crate::report::stall::reporter::Held,
    _tracked: track::Held,
    heads: head_queue::HeldHeads,
    in_domains: HeldInDomains,
    _domains: domains::Held,
    worker: worker::Held,
    tables: hash_table_worker::Held,
    serve: stats_server::Held,
    /// Last: a domain that has lost all other owners meanwhile ends here, and the callbacks that it
    /// runs then may need the locks.
    handles: Vec<Handle>,
}

/// The locks of all domains, by rank. Each field has one entry for each domain in
/// [`Held::handles`]. Released in the order of the fields, as above: the locks of queues before
/// that of their list.
struct HeldInDomains {
    registries: Vec<grace_periods::HeldRegistry<'static>>,
    machines: Vec<grace_periods::HeldMachine<'static>>,
    rooms: Vec<head_queue::HeldRoom<'static>>,
    callback_queue_inners: Vec<head_queue::HeldInners>,
    callback_queues: Vec<head_queue::HeldCallbackQueues<'static>>,
    queue_inners: Vec<Vec<thread_queue::HeldQueue<'static>>>,
    queues: Vec<thread_queue::Held<'static>>,
    _shared_queues: Vec<thread_queue::HeldShared<'static>>,
}

/// Keeps the forking thread's locks between the calls of `prepare` and of `parent` or `child`.
struct Place(UnsafeCell<Option<Held>>);

// SAFETY: accessed only by a thread that holds all the locks: one at a time.
unsafe impl Sync for Place {}

static HELD: Place = Place(UnsafeCell::new(None));

/// Before the fork, in the forking thread.
extern "C" fn prepare() {
    // An initialisation that is done once must not be in progress when the copy is made: in the
    // child no thread would finish it.
    INSTALL.call_once(|| ());
    fence::chosen();
    tuning::default_bytes();
    clock::monotonic_ns();
    let serve = stats_server::hold();
    let tables = hash_table_worker::hold();
    let worker = worker::hold();
    let (domains, handles) = domains::hold();
    // SAFETY: `Held` keeps the handles until the locks are released.
    let in_domains = unsafe { HeldInDomains::hold(&handles) };
    let heads = head_queue::hold_heads();
    let tracked = track::hold();
    let reporter = crate::report::stall::reporter::hold();
    let held = Held {
        futex: Some(futex::hold()),
        reporter,
        _tracked: tracked,
        heads,
        in_domains,
        _domains: domains,
        worker,
        tables,
        serve,
        handles,
    };
    // SAFETY: this thread holds all locks, see `Place`.
    unsafe { *HELD.0.get() = Some(held) };
    forking::begin();
}

/// After the fork, in the parent.
extern "C" fn parent() {
    forking::end();
    // SAFETY: as in `prepare`. Taken out before the first lock is released.
    let held = unsafe { (*HELD.0.get()).take() };
    drop(held);
}

/// After the fork, in the child.
extern "C" fn child() {
    // SAFETY: as in `prepare`.
    let Some(mut held) = (unsafe { (*HELD.0.get()).take() }) else {
        return;
    };
    forking::end();
    held.futex = None;
    fence::register_after_fork();
    percpu::register_after_fork();
    let owner = thread::token();
    rseq::after_fork();
    held.serve.after_fork();
    held.worker.after_fork();
    held.tables.after_fork();
    held.reporter.after_fork();
    thread::after_fork();
    crate::os::stack::after_fork();
    held.heads.clear();
    held.in_domains.after_fork(&held.handles, &mut held.heads, owner);
    drop(held);
}

impl HeldInDomains {
    /// Takes all locks of these domains, one rank after the other.
    ///
    /// # Safety
    /// The handles are kept until the locks have been released.
    unsafe fn hold(handles: &[Handle]) -> Self {
        let domains = || {
            handles.iter().map(|handle| {
                // SAFETY: the handle keeps the domain alive, by the contract for longer than its
                // locks are held. A static domain is never freed.
                let domain: &'static DomainState =
                    unsafe { &*std::ptr::from_ref::<DomainState>(handle) };
                domain
            })
        };
        let shared_queues = domains().map(|domain| domain.queues.hold_shared()).collect();
        let queues: Vec<_> = domains().map(|domain| domain.queues.hold()).collect();
        // SAFETY: as above, the queues' locks are released before the lists'.
        let queue_inners = queues.iter().map(|queues| unsafe { queues.hold_queues() }).collect();
        let callback_queues: Vec<_> =
            domains().map(|domain| domain.callback_queues.hold()).collect();
        // SAFETY: as above, the callback queues' locks are released before the lists'.
        let callback_queue_inners = callback_queues
            .iter()
            .map(|callback_queues| unsafe { callback_queues.hold_inners() })
            .collect();
        let rooms = domains().map(|domain| domain.callback_queues.waiting_room.hold()).collect();
        let machines = domains().map(|domain| domain.grace_periods.hold_machine()).collect();
        let registries = domains().map(|domain| domain.grace_periods.hold_registry()).collect();
        Self {
            registries,
            machines,
            rooms,
            callback_queue_inners,
            callback_queues,
            queue_inners,
            queues,
            _shared_queues: shared_queues,
        }
    }

    /// In the child: repairs the domains.
    fn after_fork(&mut self, handles: &[Handle], heads: &mut head_queue::HeldHeads, owner: usize) {
        for (at, domain) in handles.iter().enumerate() {
            let (inners, room) = (&mut self.callback_queue_inners[at], &mut self.rooms[at]);
            let callback_queues = self.callback_queues[at].after_fork(inners, room, heads, owner);
            self.queues[at].after_fork(&mut self.queue_inners[at], domain, owner, callback_queues);
            domain.after_fork(&mut self.machines[at], &mut self.registries[at], owner);
        }
    }
}

#[cfg(all(unix, not(miri)))]
mod imp {
    /// Registers the three functions for good.
    pub(super) fn install() {
        // SAFETY: three functions of the right type that live for ever.
        let result = unsafe {
            libc::pthread_atfork(Some(super::prepare), Some(super::parent), Some(super::child))
        };
        assert!(result == 0, "quiescence: pthread_atfork fails with error {result}: out of memory");
    }
}

#[cfg(any(not(unix), miri))]
mod imp {
    /// No fork here.
    pub(super) fn install() {
        let _: [extern "C" fn(); 3] = [super::prepare, super::parent, super::child];
    }
}
