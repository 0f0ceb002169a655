//! `fork`: the child has the forking thread only, and finds every domain whole.
//!
//! Before the fork every lock of every domain is taken, in the order of their ranks
//! (`os/lock_rank.rs`), so that no other thread is in the midst of something when the memory is
//! copied. The parent lets them go. The child first puts right what the missing threads leave
//! behind: their readers are unregistered, a grace period that one of them drove starts again from
//! its fence, and their queues become orphans that the next `barrier` or the worker runs.

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

/// The system calls us at every fork, from the first domain on.
static INSTALL: Once = Once::new();

/// Has the system call us at every fork from now on and at the end of the process, if it does not
/// yet. Called when the first domain or table is used.
pub(crate) fn watch() {
    INSTALL.call_once(|| {
        imp::install();
        assert!(exit::at_exit(super::end::finish), "quiescence: atexit fails: out of memory");
    });
}

/// Everything that is locked while the memory is copied. The guards refer to the domains beside
/// them and are dropped first.
struct Held {
    /// `None` in a child that begins to put things right, where sleepers are woken.
    futex: Option<futex::Held>,
    in_domains: HeldInDomains,
    domains: domains::Held,
    worker: worker::Held,
    tables: hash_table_worker::Held,
    heads: head_queue::HeldHeads,
    tracked: track::Held,
    reporter: crate::report::stall::reporter::Held,
    serve: stats_server::Held,
}

/// The locks of all domains, those of one rank beside each other. Each list has one entry a domain.
struct HeldInDomains {
    registries: Vec<grace_periods::HeldRegistry<'static>>,
    machines: Vec<grace_periods::HeldMachine<'static>>,
    rooms: Vec<head_queue::HeldRoom<'static>>,
    callback_queue_inners: Vec<head_queue::HeldInners>,
    callback_queues: Vec<head_queue::HeldCallbackQueues<'static>>,
    queue_inners: Vec<Vec<thread_queue::HeldQueue<'static>>>,
    queues: Vec<thread_queue::Held<'static>>,
    shared_queues: Vec<thread_queue::HeldShared<'static>>,
    handles: Vec<Handle>,
}

/// Where the forking thread keeps what it holds between the two calls.
struct Place(UnsafeCell<Option<Held>>);

// SAFETY: touched by a thread that has taken all the locks and not given them back: one at a time.
unsafe impl Sync for Place {}

static HELD: Place = Place(UnsafeCell::new(None));

/// Before the fork, in the forking thread.
extern "C" fn prepare() {
    // What is being initialised once must be done before the copy is made: in the child no thread
    // would finish it.
    INSTALL.call_once(|| ());
    fence::chosen();
    tuning::default_bytes();
    clock::monotonic_ns();
    let serve = stats_server::hold();
    let tables = hash_table_worker::hold();
    let worker = worker::hold();
    let (domains, handles) = domains::hold();
    let in_domains = HeldInDomains::hold(handles);
    let heads = head_queue::hold_heads();
    let tracked = track::hold();
    let reporter = crate::report::stall::reporter::hold();
    let futex = Some(futex::hold());
    // SAFETY: all locks are ours, see `Place`.
    unsafe {
        *HELD.0.get() = Some(Held {
            futex,
            in_domains,
            domains,
            worker,
            tables,
            heads,
            tracked,
            reporter,
            serve,
        });
    };
    forking::begin();
}

/// After the fork, in the parent.
extern "C" fn parent() {
    forking::end();
    // SAFETY: as in `prepare`. Taken out before the first lock is let go.
    if let Some(held) = unsafe { (*HELD.0.get()).take() } {
        held.let_go();
    }
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
    held.in_domains.after_fork(&mut held.heads, owner);
    held.let_go();
}

impl Held {
    /// Gives all locks back. If meanwhile a domain has come to have no other owner, it ends
    /// afterwards: the callbacks it runs then may need the locks.
    fn let_go(self) {
        let Self { futex, in_domains, domains, worker, tables, heads, tracked, reporter, serve } =
            self;
        drop(futex);
        drop(reporter);
        drop(tracked);
        drop(heads);
        let handles = in_domains.let_go();
        drop(domains);
        drop(worker);
        drop(tables);
        drop(serve);
        drop(handles);
    }
}

impl HeldInDomains {
    /// Takes all locks of these domains, one rank after the other.
    fn hold(handles: Vec<Handle>) -> Self {
        let domains = || {
            handles.iter().map(|handle| {
                // SAFETY: the guards are gone before `handles`, which keep the domains alive, are:
                // fields drop in the order of their declaration, and `let_go` drops them in that
                // order. A static domain lives for ever.
                let domain: &'static DomainState =
                    unsafe { &*std::ptr::from_ref::<DomainState>(handle) };
                domain
            })
        };
        let shared_queues = domains().map(|domain| domain.queues.hold_shared()).collect();
        let queues: Vec<_> = domains().map(|domain| domain.queues.hold()).collect();
        // SAFETY: as above, the queues' locks are let go before the lists'.
        let queue_inners = queues.iter().map(|queues| unsafe { queues.hold_queues() }).collect();
        let callback_queues: Vec<_> =
            domains().map(|domain| domain.callback_queues.hold()).collect();
        // SAFETY: as above, the callback queues' locks are let go before the lists'.
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
            shared_queues,
            handles,
        }
    }

    /// In the child.
    fn after_fork(&mut self, heads: &mut head_queue::HeldHeads, owner: usize) {
        for (at, domain) in self.handles.iter().enumerate() {
            let (inners, room) = (&mut self.callback_queue_inners[at], &mut self.rooms[at]);
            let callback_queues = self.callback_queues[at].after_fork(inners, room, heads, owner);
            self.queues[at].after_fork(&mut self.queue_inners[at], domain, owner, callback_queues);
            domain.after_fork(&mut self.machines[at], &mut self.registries[at], owner);
        }
    }

    /// Gives all locks back, and returns the domains.
    fn let_go(self) -> Vec<Handle> {
        let Self {
            registries,
            machines,
            rooms,
            callback_queue_inners,
            callback_queues,
            queue_inners,
            queues,
            shared_queues,
            handles,
        } = self;
        drop((registries, machines, rooms));
        // Locks of what stands in a list before the list's.
        drop((callback_queue_inners, callback_queues));
        drop((queue_inners, queues, shared_queues));
        handles
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
