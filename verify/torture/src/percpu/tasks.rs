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

/// Tasks, and how often each of them has got on.
#[derive(Default)]
struct Tasks {
    handles: Vec<JoinHandle<()>>,
    steps: Vec<Arc<AtomicU64>>,
}

/// Has tasks until the run is over.
pub(crate) fn run(yards: &[Yard], shuffler: &Arc<Shuffler>, context: &ThreadContext) {
    let runtime = match runtime(shuffler, context.next()) {
        Ok(runtime) => runtime,
        Err(error) => {
            return context
                .fault(FaultKind::Process, "", || format!("no threads for tasks: {error}"));
        }
    };
    let mut tasks = Tasks::default();
    for yard in yards {
        for number in 0..READERS + UPDATERS {
            let (yard, context) = (yard.clone(), context.clone());
            if number < READERS {
                tasks.spawn(&runtime, |steps| read(yard, context, steps));
            } else {
                tasks.spawn(&runtime, |steps| update(yard, context, steps));
            }
        }
    }
    tasks.watch(context);
    for handle in tasks.handles {
        let ended = runtime.block_on(handle).is_ok();
        context.expect(ended, FaultKind::Panic, "", || "a task; see standard error".to_owned());
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

impl Tasks {
    fn spawn<F>(&mut self, runtime: &Runtime, task: impl FnOnce(Arc<AtomicU64>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let steps = Arc::new(AtomicU64::new(0));
        self.handles.push(runtime.spawn(task(Arc::clone(&steps))));
        self.steps.push(steps);
    }

    /// Says that this thread gets on, as long as every task does; until all have ended.
    fn watch(&self, context: &ThreadContext) {
        let mut seen = vec![0; self.steps.len()];
        while !self.handles.iter().all(JoinHandle::is_finished) {
            let now: Vec<u64> = self.steps.iter().map(|steps| steps.load(Relaxed)).collect();
            let ended = self.handles.iter().map(JoinHandle::is_finished);
            if now.iter().zip(&seen).zip(ended).all(|((now, seen), ended)| now != seen || ended) {
                context.record().begin(Step::Update(Way::TaskAwaited));
                seen = now;
            }
            thread::sleep(LOOK);
        }
    }
}

/// Reads: each section is suspended some times, and continues wherever the task does.
async fn read(yard: Yard, context: ThreadContext, steps: Arc<AtomicU64>) {
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
async fn update(yard: Yard, context: ThreadContext, steps: Arc<AtomicU64>) {
    let (participant, way) = (Participant::new(&yard.arena, &context), Way::TaskAwaited);
    while !context.is_over() {
        let new = participant.arena.pool.take();
        let mut passing = participant.arena.pool.take_ageing();
        passing.extend(new.map(|new| participant.replace(new, way)));
        if context.one_in(4) {
            give_up(&yard, &context.ledger).await;
        }
        if context.one_in(2) {
            yard.srcu().synchronize_async().await;
        } else {
            yard.srcu().wait_async(yard.srcu().start_poll()).await;
        }
        participant.arena.pool.aged(passing);
        steps.fetch_add(1, Relaxed);
    }
}
