//! The worker: one thread per process that looks after what nobody else does.
//!
//! It starts with the first callback that is ever queued. While some domain has callbacks waiting
//! it looks in every [`TICK`](sync::TICK): closes batches, takes steps of grace periods, runs what is
//! ready. It never waits for one domain's readers, so a stalled domain holds no other one up. When
//! nothing waits anywhere it sleeps without a timer: an idle process is idle.
//!
//! What it spends on a domain's grace periods is measured, and kept within the domain's budget: after a
//! turn that was dear it leaves the domain's grace periods alone for longer than a tick, unless they
//! are wanted expedited. A domain under `poll` is looked at again without pause.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use grace::Urgency;
use grace::policy::Budget;

use crate::core::{Attention, Core, Me};
use crate::kind::{Handle, WeakHandle};
use crate::local;
use crate::os::{clock, signals, sync};

/// Callbacks run for one queue before the next one gets its turn.
const RUNS_PER_TURN: usize = 64;

static WORKER: Mutex<State> = Mutex::new(State { started: false, domains: Vec::new() });
static WORK: Condvar = Condvar::new();

#[derive(Debug)]
struct State {
    started: bool,
    /// Domains with something to do. Not kept alive: a domain that ends runs what waits in it itself.
    domains: Vec<Task>,
}

/// A domain with something to do.
#[derive(Debug)]
struct Task<H = WeakHandle> {
    domain: H,
    /// When it is looked at again, unless it wants that at once.
    tick_at: Instant,
    /// Until when its grace periods are left alone, as far as the budget goes.
    rest_until: Instant,
}

impl Task {
    fn upgrade(self) -> Option<Task<Handle>> {
        let Self { domain, tick_at, rest_until } = self;
        Some(Task { domain: domain.upgrade()?, tick_at, rest_until })
    }
}

/// Tells the worker that `handle` has callbacks.
pub(crate) fn announce(handle: &Handle) {
    let mut state = sync::lock(&WORKER);
    if handle.queues.announced.swap(true, Relaxed) {
        return;
    }
    let now = Instant::now();
    let task = Task { domain: handle.downgrade(), tick_at: now + sync::TICK, rest_until: now };
    state.domains.push(task);
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
    let refused = state.domains.drain(..).filter_map(|task| task.domain.upgrade());
    let refused: Vec<_> = refused.collect();
    refused.iter().for_each(|handle| handle.queues.announced.store(false, Relaxed));
    refused
}

fn run() {
    let mut state = sync::lock(&WORKER);
    let mut next = Attention::AtTick;
    loop {
        while state.domains.is_empty() {
            state = sync::wait(&WORK, state);
        }
        state = pause(state, next);
        let tasks = std::mem::take(&mut state.domains);
        drop(state);
        let mut tasks: Vec<Task<Handle>> = tasks.into_iter().filter_map(Task::upgrade).collect();
        tasks.iter_mut().for_each(tend);
        state = sync::lock(&WORKER);
        // Under the lock that `announce` takes: a callback added from now on announces again.
        next = Attention::AtTick;
        for Task { domain, tick_at, rest_until } in &tasks {
            let attention = attention_or_forget(domain);
            next = next.max(attention);
            if attention != Attention::None {
                let (tick_at, rest_until) = (*tick_at, *rest_until);
                state.domains.push(Task { domain: domain.downgrade(), tick_at, rest_until });
            }
        }
        drop(state);
        // Where this was the last owner the domain ends here, and runs callbacks: without the lock.
        drop(tasks);
        state = sync::lock(&WORKER);
    }
}

/// Lets a tick go by, so that callbacks gather; or only lets others run, if a domain is to be looked at
/// again at once.
fn pause(state: MutexGuard<'static, State>, next: Attention) -> MutexGuard<'static, State> {
    drop(state);
    match next {
        Attention::AtOnce => std::thread::yield_now(),
        Attention::AtTick | Attention::None => sync::tick(),
    }
    sync::lock(&WORKER)
}

/// What is still to be done in the domain; if nothing is, the next callback is to be announced.
fn attention_or_forget(handle: &Handle) -> Attention {
    handle.queues.announced.store(false, Relaxed);
    let callbacks = handle.queues.all().iter().any(|queue| !queue.is_empty());
    let attention = if callbacks { Attention::AtTick } else { Attention::None };
    let attention = attention.max(handle.attention());
    handle.queues.announced.store(attention != Attention::None, Relaxed);
    attention
}

/// Does what can be done in a domain without waiting.
fn tend(task: &mut Task<Handle>) {
    let core: &Core = &task.domain;
    let now = Instant::now();
    if now < task.tick_at && core.attention() != Attention::AtOnce {
        return; // another domain wants to be looked at without pause
    }
    task.tick_at = now + sync::TICK;
    let queues = core.queues.all();
    queues.iter().for_each(|queue| queue.close(core, Urgency::Background));
    if now >= task.rest_until || core.urgency() == Urgency::Expedited {
        task.rest_until = now + advance(core);
    }
    for queue in &queues {
        for _ in 0..RUNS_PER_TURN {
            if queue.run_some(core, local::token()) == 0 {
                break;
            }
        }
    }
    core.queues.forget_orphans();
}

/// Takes steps of a grace period; answers how long the domain's are to be left alone then.
fn advance(core: &Core) -> Duration {
    let began_ns = clock::thread_cpu_ns();
    core.advance_at_tick(Me { quiescent_slots: 0 });
    let spent_ns = clock::thread_cpu_ns().saturating_sub(began_ns);
    // Relaxed: a statistic.
    core.worker_ns.fetch_add(spent_ns, Relaxed);
    let rest_ns = |budget: Budget| budget.rest_ns(spent_ns, sync::TICK.as_nanos() as u64);
    Duration::from_nanos(core.budget.map_or(0, rest_ns))
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
