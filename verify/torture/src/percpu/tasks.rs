//! Sections held across `.await`, in tasks that go from thread to thread; and tasks that wait for
//! grace periods.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};

use super::sleepable::{Yard, give_up};
use crate::arena::Participant;
use crate::context::{LOOK, ThreadContext};
use crate::delays;
use crate::kinds::{FaultKind, ReaderKind, Step, Way};
use crate::shuffler::{Shuffler, Stay};

/// Threads of the runtime: more than one, so that tasks move.
const THREADS: usize = 3;

/// Tasks that read, and tasks that update, in each domain.
const READERS: usize = 12;
const UPDATERS: usize = 2;

/// How long a task sleeps in a section, at most, and how seldom.
const SLEEP_MAX_US: u64 = 4_000;
const SLEEP_ONE_IN: u64 = 32;

thread_local! {
    static STAY: RefCell<Option<Stay>> = const { RefCell::new(None) };
}

/// How often a task has got on.
type Steps = Arc<AtomicU64>;

/// Has tasks until the run is over.
pub(crate) fn run(yards: &[Yard], shuffler: &Arc<Shuffler>, context: &ThreadContext) {
    let runtime = match runtime(shuffler, context.next()) {
        Ok(runtime) => runtime,
        Err(error) => {
            return context
                .fault(FaultKind::Process, "", || format!("no threads for tasks: {error}"));
        }
    };
    let mut tasks = Vec::new();
    for yard in yards {
        for number in 0..READERS + UPDATERS {
            let steps: Steps = Arc::default();
            let (yard, own, of_task) = (yard.clone(), context.clone(), Arc::clone(&steps));
            let handle = match number {
                0..READERS => runtime.spawn(read(yard, own, of_task)),
                _ => runtime.spawn(update(yard, own, of_task)),
            };
            tasks.push((handle, steps));
        }
    }
    watch(&tasks, context);
    for (handle, _) in tasks {
        let ended = runtime.block_on(handle).is_ok();
        context.expect(ended, FaultKind::Panic, "", || "a task; see standard error".to_owned());
    }
}

/// Says that this thread gets on, as long as every task does; until all have ended.
fn watch(tasks: &[(JoinHandle<()>, Steps)], context: &ThreadContext) {
    let mut seen = vec![0; tasks.len()];
    while !tasks.iter().all(|(handle, _)| handle.is_finished()) {
        let mut with_seen = tasks.iter().zip(&seen);
        if with_seen
            .all(|((handle, steps), &seen)| steps.load(Relaxed) != seen || handle.is_finished())
        {
            context.record().begin(Step::Update(Way::TaskAwaited));
            seen = tasks.iter().map(|(_, steps)| steps.load(Relaxed)).collect();
        }
        thread::sleep(LOOK);
    }
}

/// A runtime whose threads are moved and interrupted.
fn runtime(shuffler: &Arc<Shuffler>, seed: u64) -> std::io::Result<Runtime> {
    let (shuffler, number) = (Arc::clone(shuffler), AtomicU64::new(seed));
    Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("torture-tasks")
        .enable_time()
        .on_thread_start(move || {
            delays::seed_thread(number.fetch_add(1, Relaxed));
            STAY.set(Some(shuffler.join()));
        })
        .on_thread_stop(|| drop(STAY.take()))
        .build()
}

/// Reads: each section is suspended some times, and continues wherever the task does.
async fn read(yard: Yard, context: ThreadContext, steps: Steps) {
    let (participant, kind) = (Participant::new(&yard.arena, &context), ReaderKind::SrcuTask);
    while !context.is_over() {
        let visit = yard.hold(&participant, kind);
        for _ in 0..context.below(4) {
            yield_now().await;
        }
        if context.one_in(SLEEP_ONE_IN) {
            tokio::time::sleep(Duration::from_micros(context.below(SLEEP_MAX_US))).await;
        }
        participant.leave(visit);
        steps.fetch_add(1, Relaxed);
        yield_now().await;
    }
}

/// Updates. A task must not wait but by `.await`: those that it would wait for may need its thread.
async fn update(yard: Yard, context: ThreadContext, steps: Steps) {
    let (participant, way) = (Participant::new(&yard.arena, &context), Way::TaskAwaited);
    while !context.is_over() {
        let new = participant.arena.pool.take();
        let mut passing = participant.arena.pool.take_ageing();
        passing.extend(new.map(|new| participant.replace(new, way)));
        if context.one_in(4) {
            give_up(&yard, &context.ledger).await;
        }
        if context.one_in(2) {
            yard.place.srcu().synchronize_async().await;
        } else {
            yard.place.srcu().wait_async(yard.place.srcu().start_poll()).await;
        }
        participant.arena.pool.aged(passing);
        steps.fetch_add(1, Relaxed);
    }
}
