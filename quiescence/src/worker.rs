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
use std::time::Instant;

use grace::Urgency;

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
    /// While another domain is looked at without pause: when it is this one's turn.
    tick_at: Instant,
}

impl Task {
    fn upgrade(self) -> Option<Task<Handle>> {
        Some(Task { domain: self.domain.upgrade()?, tick_at: self.tick_at })
    }
}

/// Tells the worker that `handle` has callbacks, or a grace period to attend to. Answers whether there is
/// a worker.
pub(crate) fn announce(handle: &Handle) -> bool {
    let mut state = sync::lock(&WORKER);
    if handle.queues.announced.swap(true, Relaxed) {
        return true;
    }
    state.domains.push(Task { domain: handle.downgrade(), tick_at: Instant::now() + sync::TICK });
    let refused = if state.started {
        WORK.notify_one();
        Vec::new()
    } else {
        start(&mut state)
    };
    let started = state.started;
    drop(state);
    // Where this was the last owner the domain ends here, and runs callbacks: without the lock.
    drop(refused);
    started
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
        tasks.iter_mut().for_each(|task| tend(task, next));
        state = sync::lock(&WORKER);
        // Under the lock that `announce` takes: a callback added from now on announces again.
        next = Attention::AtTick;
        for Task { domain, tick_at } in &tasks {
            let attention = attention_or_forget(domain);
            next = next.max(attention);
            if attention != Attention::None {
                state.domains.push(Task { domain: domain.downgrade(), tick_at: *tick_at });
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

/// Does what can be done in a domain without waiting. `paused` is what the worker paused for before.
fn tend(task: &mut Task<Handle>, paused: Attention) {
    let core: &Core = &task.domain;
    let now = Instant::now();
    let restless = paused == Attention::AtOnce;
    if restless && now < task.tick_at && core.attention() != Attention::AtOnce {
        return; // another domain wants to be looked at without pause
    }
    task.tick_at = now + sync::TICK;
    let queues = core.queues.all();
    queues.iter().for_each(|queue| queue.close(core, Urgency::Background));
    // Relaxed: the worker's own.
    let rests_until_ns = core.rests_until_ns.load(Relaxed);
    if clock::monotonic_ns() >= rests_until_ns || core.urgency() == Urgency::Expedited {
        advance(core);
    }
    for queue in &queues {
        for _ in 0..RUNS_PER_TURN {
            if queue.run_some(core, local::token()) == 0 {
                break;
            }
        }
    }
    core.queues.forget_orphans();
    core.look_for_stall();
}

/// Takes steps of a grace period, and notes how long the domain's are to be left alone from now on. What
/// is owed already stays owed.
fn advance(core: &Core) {
    let began_ns = clock::thread_cpu_ns();
    core.advance_at_tick(Me { quiescent_slots: 0 });
    let spent_ns = clock::thread_cpu_ns().saturating_sub(began_ns);
    // Relaxed: a statistic.
    core.worker_ns.fetch_add(spent_ns, Relaxed);
    if let Some(budget) = core.budget {
        let rest_ns = budget.rest_ns(spent_ns, sync::TICK.as_nanos() as u64);
        let until_ns = clock::monotonic_ns().saturating_add(rest_ns);
        // Relaxed: the worker's own.
        core.rests_until_ns.fetch_max(until_ns, Relaxed);
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kind::Kind;
    use crate::queue::Callback;
    use crate::{Domain, domain::Builder};

    /// A domain in which a callback waits that the worker thread does not hear of.
    fn with_callback(builder: Builder) -> Domain {
        let domain = builder.build();
        let core = domain.kind().core();
        // SAFETY: takes any data, and does nothing.
        let callback = unsafe { Callback::new(std::ptr::null_mut(), |_| ()) };
        core.queues.add(1).add(core, callback);
        domain
    }

    fn tend_as_newly_announced(domain: &Domain) -> u64 {
        tend_after(Attention::AtTick, domain)
    }

    fn tend_after(paused: Attention, domain: &Domain) -> u64 {
        let tick_at = Instant::now() + Duration::from_secs(3_600);
        tend(&mut Task { domain: domain.kind().handle(), tick_at }, paused);
        domain.statistics().grace_periods
    }

    /// Who is announced while the worker sleeps is looked at when it wakes; only a domain that keeps it
    /// awake makes others wait for their tick.
    #[test]
    fn a_tick_is_everybodys() {
        let domain = with_callback(Domain::builder());
        assert_eq!(tend_after(Attention::AtOnce, &domain), 0);
        assert_eq!(tend_after(Attention::AtTick, &domain), 1);
    }

    /// Nobody gets around the budget by wanting nothing for a moment, after which the domain is
    /// announced anew.
    #[test]
    fn what_a_domain_owes_outlives_its_task() {
        let domain = with_callback(Domain::builder());
        let core = domain.kind().core();
        core.rests_until_ns.store(u64::MAX, Relaxed);
        assert_eq!(tend_as_newly_announced(&domain), 0, "it rests");
        core.request(Urgency::Expedited);
        assert_eq!(tend_as_newly_announced(&domain), 1, "but not where somebody is in a hurry");
        assert_eq!(core.rests_until_ns.load(Relaxed), u64::MAX, "and then it still owes");
        core.rests_until_ns.store(0, Relaxed);
        core.request(Urgency::Background);
        assert_eq!(tend_as_newly_announced(&domain), 2);
    }

    /// The rest begins when the turn ends: else a long turn eats it up.
    #[test]
    fn a_turn_is_no_more_than_its_share_of_turn_and_rest() {
        let domain = with_callback(Domain::builder().worker_budget_ppm(1));
        let core = domain.kind().core();
        let began_ns = clock::monotonic_ns();
        assert_eq!(tend_as_newly_announced(&domain), 1);
        let spent_ns = core.worker_ns.load(Relaxed);
        assert!(spent_ns > 0);
        let rests_until_ns = core.rests_until_ns.load(Relaxed);
        assert!(spent_ns * 1_000_000 <= rests_until_ns - began_ns, "{spent_ns}: {rests_until_ns}");
    }
}
