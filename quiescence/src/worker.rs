//! The worker: one thread per process that looks after what nobody else does.
//!
//! It starts with the first callback that is ever queued. While some domain has callbacks waiting
//! it looks in every [`TICK`]: closes batches, takes steps of grace periods, runs what is ready. It
//! never waits for one domain's readers, so a stalled domain holds no other one up. When nothing
//! waits anywhere it sleeps without a timer: an idle process is idle.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::core::{Core, Me};
use crate::kind::{Handle, WeakHandle};
use crate::local;
use crate::os::{signals, sync};

/// How long callbacks wait for company, and between two looks at a grace period that others hold up.
/// A tick at HZ = 100: rcu_ltimer's overhead, where nobody waits.
const TICK: Duration = Duration::from_millis(10);

/// Callbacks run for one queue before the next one gets its turn.
const RUNS_PER_TURN: usize = 64;

static WORKER: Mutex<State> = Mutex::new(State { started: false, domains: Vec::new() });
static WORK: Condvar = Condvar::new();

#[derive(Debug)]
struct State {
    started: bool,
    /// Domains with something to do. Not kept alive: a domain that ends runs what waits in it itself.
    domains: Vec<WeakHandle>,
}

/// Tells the worker that `handle` has callbacks.
pub(crate) fn announce(handle: &Handle) {
    let mut state = sync::lock(&WORKER);
    if handle.queues.announced.swap(true, Relaxed) {
        return;
    }
    state.domains.push(handle.downgrade());
    let refused = if state.started {
        WORK.notify_one();
        Vec::new()
    } else {
        start(&mut state)
    };
    drop(state);
    // Where this was the last owner the domain ends here, and runs callbacks: without the lock.
    drop(refused);
}

/// Starts the thread. If the system gives none, the callbacks wait for their threads' next updates
/// or a barrier, and the next announcement tries again; the domains are given back.
fn start(state: &mut State) -> Vec<Handle> {
    let spawned =
        signals::without(|| std::thread::Builder::new().name("quiescence".into()).spawn(run));
    state.started = spawned.is_ok();
    if state.started {
        return Vec::new();
    }
    let refused: Vec<_> = state.domains.drain(..).filter_map(|domain| domain.upgrade()).collect();
    refused.iter().for_each(|handle| handle.queues.announced.store(false, Relaxed));
    refused
}

fn run() {
    let mut state = sync::lock(&WORKER);
    loop {
        while state.domains.is_empty() {
            state = sync::wait(&WORK, state);
        }
        state = pause(state);
        let domains = std::mem::take(&mut state.domains);
        drop(state);
        let handles: Vec<Handle> = domains.iter().filter_map(WeakHandle::upgrade).collect();
        handles.iter().for_each(tend);
        state = sync::lock(&WORKER);
        // Under the lock that `announce` takes: a callback added from now on announces again.
        let busy = handles.iter().filter(|handle| has_work_or_forget(handle));
        state.domains.extend(busy.map(Handle::downgrade));
        drop(state);
        // Where this was the last owner the domain ends here, and runs callbacks: without the lock.
        drop(handles);
        state = sync::lock(&WORKER);
    }
}

/// Lets a tick go by, so that callbacks gather.
fn pause(state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    drop(state);
    std::thread::sleep(TICK);
    sync::lock(&WORKER)
}

/// Whether callbacks wait in the domain; if none do, the next one is to be announced.
fn has_work_or_forget(handle: &Handle) -> bool {
    handle.queues.announced.store(false, Relaxed);
    let work = handle.queues.all().iter().any(|queue| !queue.is_empty());
    handle.queues.announced.store(work, Relaxed);
    work
}

/// Does what can be done in a domain without waiting.
fn tend(handle: &Handle) {
    let core: &Core = handle;
    let queues = core.queues.all();
    queues.iter().for_each(|queue| queue.close(core));
    core.advance(Me { quiescent_slots: 0 });
    for queue in &queues {
        for _ in 0..RUNS_PER_TURN {
            if queue.run_some(core, local::token()) == 0 {
                break;
            }
        }
    }
    core.queues.forget_orphans();
}

/// The worker's lock, held across a `fork`.
pub(crate) struct Held(MutexGuard<'static, State>);

/// Before a `fork`.
pub(crate) fn hold() -> Held {
    Held(sync::lock(&WORKER))
}

impl Held {
    /// In the child: there is no worker. The next announcement starts one.
    pub(crate) fn after_fork(&mut self) {
        self.0.started = false;
        self.0.domains.clear();
    }
}
