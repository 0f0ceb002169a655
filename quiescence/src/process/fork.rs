//! `fork`: the child has the forking thread only, and finds every domain whole.
//!
//! Before the fork every lock of every domain is taken, in the order of `gp::grace_periods`' page,
//! so that no other thread is in the midst of something when the memory is copied. The parent lets
//! them go. The child first puts right what the missing threads leave behind: their readers are
//! unregistered, a grace period that one of them drove starts again from its fence, and their
//! callback queues become orphans that the next `barrier` or the worker runs.

use std::cell::UnsafeCell;
use std::sync::Once;

use crate::collections::hash_table_worker;
use crate::gp::grace_periods;
use crate::gp::tuning;
use crate::os::{clock, exit, fence, forking, futex, percpu, thread};
use crate::reclaim::debug_objects;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::domains;
use crate::reclaim::handle::Handle;
use crate::reclaim::lane;
use crate::reclaim::queue;
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
    domains_held: Vec<DomainHeld>,
    domains: domains::Held,
    worker: worker::Held,
    tables: hash_table_worker::Held,
    retired: debug_objects::Held,
    heads: lane::HeldHeads,
    tracked: track::Held,
    reporter: crate::report::stall::reporter::Held,
    serve: stats_server::Held,
}

struct DomainHeld {
    core: grace_periods::Held<'static>,
    lane_inners: lane::HeldInners,
    lanes: lane::HeldLanes<'static>,
    queue_inners: Vec<queue::HeldQueue<'static>>,
    queues: queue::Held<'static>,
    handle: Handle,
}

/// Where the forking thread keeps what it holds between the two calls.
struct Place(UnsafeCell<Option<Held>>);

// SAFETY: touched by a thread that has taken all the locks and not given them back: one at a time.
unsafe impl Sync for Place {}

static HELD: Place = Place(UnsafeCell::new(None));

/// Before the fork, in the forking thread.
extern "C" fn prepare() {
    // What is being initialised once must be done before the copy is made: in the child nobody would
    // finish it.
    INSTALL.call_once(|| ());
    fence::chosen();
    tuning::default_bytes();
    clock::monotonic_ns();
    let serve = stats_server::hold();
    let tables = hash_table_worker::hold();
    let worker = worker::hold();
    let (domains, handles) = domains::hold();
    let domains_held = handles.into_iter().map(DomainHeld::hold).collect();
    let retired = debug_objects::hold();
    let heads = lane::hold_heads();
    let tracked = track::hold();
    let reporter = crate::report::stall::reporter::hold();
    let futex = Some(futex::hold());
    // SAFETY: all locks are ours, see `Place`.
    unsafe {
        *HELD.0.get() = Some(Held {
            futex,
            domains_held,
            domains,
            worker,
            tables,
            retired,
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
    for domain in &mut held.domains_held {
        let lanes = domain.lanes.after_fork(&mut domain.lane_inners, &mut held.heads, owner);
        domain.queues.after_fork(&mut domain.queue_inners, &domain.handle, owner, lanes);
        domain.handle.after_fork(&mut domain.core, owner);
    }
    held.let_go();
}

impl Held {
    /// Gives all locks back. If meanwhile a domain has come to have no other owner, it ends
    /// afterwards: the callbacks it runs then may need the locks.
    fn let_go(self) {
        let Self {
            futex,
            domains_held,
            domains,
            worker,
            tables,
            retired,
            heads,
            tracked,
            reporter,
            serve,
        } = self;
        drop(futex);
        drop(reporter);
        drop(tracked);
        drop(heads);
        drop(retired);
        let handles: Vec<Handle> = domains_held.into_iter().map(|domain| domain.handle).collect();
        drop(domains);
        drop(worker);
        drop(tables);
        drop(serve);
        drop(handles);
    }
}

impl DomainHeld {
    /// Takes all locks of a domain.
    fn hold(handle: Handle) -> Self {
        // SAFETY: the guards are dropped before `handle`, which keeps the domain alive: fields drop
        // in the order of their declaration. A static domain lives for ever anyway.
        let core: &'static DomainState = unsafe { &*std::ptr::from_ref::<DomainState>(&*handle) };
        let queues = core.queues.hold();
        let queue_inners = queues
            .queues()
            .iter()
            // SAFETY: the list keeps the queues alive, and is locked until these guards are gone.
            .map(|queue| unsafe { &*std::sync::Arc::as_ptr(queue) }.hold())
            .collect();
        let lanes = core.lanes.hold();
        // SAFETY: fields drop in the order of their declaration; `handle` comes last.
        let lane_inners = unsafe { lanes.hold_inners() };
        Self { core: core.hold(), lane_inners, lanes, queue_inners, queues, handle }
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
