//! `fork`: the child has the forking thread only, and finds every domain whole.
//!
//! Before the fork every lock of every domain is taken, in the order of `core`'s module page, so
//! that no other thread is in the midst of something when the memory is copied. The parent lets
//! them go. The child first puts right what the missing threads leave behind: their readers are
//! unregistered, a grace period that one of them drove starts again from its fence, and their
//! callback queues become orphans that the next `barrier` or the worker runs.

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, Once};

use crate::call_rcu::lane;
use crate::collections::hash_table_worker;
use crate::gp::by_domain::ByDomain;
use crate::gp::core;
use crate::gp::handle::{Handle, WeakHandle};
use crate::gp::tuning;
use crate::os::{clock, fence, percpu, sync};
use crate::process::exit;
use crate::reclaim::debug_objects;
use crate::reclaim::defer;
use crate::reclaim::local;
use crate::reclaim::queue;
use crate::reclaim::worker;
use crate::report::stats_server;
use crate::rseq;
use crate::srcu::track;

/// The domains in use, so that a fork finds them. One that ends takes itself out ([`forget`]).
static DOMAINS: Mutex<ByDomain<WeakHandle>> = Mutex::new(ByDomain::new());

/// The system calls us at every fork, from the first domain on.
static INSTALL: Once = Once::new();

/// Remembers a domain, when it is used for the first time.
#[cold]
pub(crate) fn remember(handle: &Handle) {
    watch();
    let mut domains = sync::lock(&DOMAINS);
    if !handle.known.swap(true, Relaxed) {
        domains.insert(handle.downgrade());
    }
    drop(domains);
    stats_server::attend();
}

/// A domain that is known ends. None of our locks is held.
pub(crate) fn forget(core: &core::Core) {
    let forgotten = sync::lock(&DOMAINS).remove(core);
    drop(forgotten);
}

/// Has the system call us at every fork from now on, if it does not yet.
pub(crate) fn watch() {
    INSTALL.call_once(|| {
        imp::install();
        assert!(exit::at_exit(finish), "quiescence: atexit fails: out of memory");
    });
}

/// The domains in use, so many at most, and how many there are.
pub(crate) fn domains(max: usize) -> (Vec<Handle>, usize) {
    let domains = sync::lock(&DOMAINS);
    (domains.iter().filter_map(WeakHandle::upgrade).take(max).collect(), domains.len())
}

/// How long the orderly end of a process waits for other threads' sections, at most.
const FINISH_NS: u64 = 200_000_000;

/// At an orderly end of the process: runs what waits. Where other threads stay in sections, not for ever.
extern "C" fn finish() {
    let deadline_ns = clock::monotonic_ns().saturating_add(FINISH_NS);
    let (mut domains, _) = domains(usize::MAX);
    // What C queues expects to be lost here, as with liburcu: what it looks at may be gone.
    domains.retain(|handle| handle.foreign.is_none());
    // All of them each time: a callback of one may queue in another.
    while !domains.iter().map(|handle| defer::finish(handle)).fold(true, |all, one| all & one)
        && clock::monotonic_ns() < deadline_ns
    {
        sync::moment();
    }
    end_threads(deadline_ns);
}

/// Has the library's own threads end, so that none of them runs user code beside what the program tears down from now
/// on. Waits for them until then: a callback that one of them is in may never return, or be the one that ends the process.
fn end_threads(deadline_ns: u64) {
    let ends = [worker::end, crate::report::stall::reporter::end, hash_table_worker::end];
    while ends.iter().filter(|end| end()).count() != 0
        && !crate::os::thread::is_ours()
        && clock::monotonic_ns() < deadline_ns
    {
        sync::moment();
    }
}

/// Everything that is locked while the memory is copied. The guards refer to the domains beside
/// them and are dropped first.
struct Held {
    domains_held: Vec<DomainHeld>,
    domains: MutexGuard<'static, ByDomain<WeakHandle>>,
    worker: worker::Held,
    tables: hash_table_worker::Held,
    retired: debug_objects::Held,
    heads: lane::HeldHeads,
    tracked: track::Held,
    reporter: crate::report::stall::reporter::Held,
    serve: stats_server::Held,
}

struct DomainHeld {
    core: core::Held<'static>,
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
    let domains = sync::lock(&DOMAINS);
    let handles: Vec<Handle> = domains.iter().filter_map(WeakHandle::upgrade).collect();
    let domains_held = handles.into_iter().map(DomainHeld::hold).collect();
    let retired = debug_objects::hold();
    let heads = lane::hold_heads();
    let tracked = track::hold();
    let reporter = crate::report::stall::reporter::hold();
    // SAFETY: all locks are ours, see `Place`.
    unsafe {
        *HELD.0.get() = Some(Held {
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
    // Relaxed: for this thread alone, which is the one that may find itself there.
    PREPARED.store(local::token(), Relaxed);
}

/// The thread that holds everything for a `fork`, as [`local::token`]; else 0.
static PREPARED: AtomicUsize = AtomicUsize::new(0);

/// Whether this thread is in the midst of a `fork`, and holds all locks: for those whom another handler of the fork may call.
pub(crate) fn is_prepared_here() -> bool {
    PREPARED.load(Relaxed) == local::token()
}

/// After the fork, in the parent.
extern "C" fn parent() {
    PREPARED.store(0, Relaxed);
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
    PREPARED.store(0, Relaxed);
    fence::register_after_fork();
    percpu::register_after_fork();
    let owner = local::token();
    rseq::after_fork();
    held.serve.after_fork();
    held.worker.after_fork();
    held.tables.after_fork();
    held.reporter.after_fork();
    crate::os::thread::after_fork();
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
        let core: &'static core::Core = unsafe { &*std::ptr::from_ref::<core::Core>(&*handle) };
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

/// For the torture: runs `child` in a child process, which ends with the code that it answers. `held` is let
/// go on both sides.
#[cfg(feature = "chaos")]
pub(crate) fn in_child<L>(held: L, child: impl FnOnce() -> i32) -> std::io::Result<u32> {
    // SAFETY: the functions above make the library whole in the child, glibc its allocator; and `child` needs
    // no other lock, by its contract. (If it does it hangs, and touches nothing that is half made.)
    let forked = unsafe { libc::fork() };
    let error = std::io::Error::last_os_error();
    drop(held);
    match forked {
        -1 => Err(error),
        0 => {
            let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            std::process::exit(code.unwrap_or(101))
        }
        pid => Ok(pid.cast_unsigned()),
    }
}

/// The domain at this address, if it is still the one with this identity.
pub(crate) fn find(core: *const core::Core, identity: usize) -> Option<Handle> {
    let domains = sync::lock(&DOMAINS);
    let handle = domains.get(core).and_then(WeakHandle::upgrade);
    // Before the handle may go, which may be the last, and run callbacks.
    drop(domains);
    handle.filter(|handle| handle.identity() == identity)
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
