//! Events, and the threads: what a thread does next.
//!
//! What a thread does is an asynchronous function ([`Me`]), which stops where it spends CPU time
//! or sleeps, and goes on when that is over. What stands between two stops takes effect at one
//! moment.

use std::cell::{RefCell, RefMut};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::mem;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::callbacks::Callbacks;
use super::costs::{Costs, ns};
use super::cpus::Cpu;
use super::driving::Domain;
use super::liburcu::Liburcu;
use super::options::{Algorithm, Options, Role};
use super::readers::{Kind, Reader, ReaderId};
use super::report::{Callbacks as ReportedCallbacks, Report, Spending, Times, reads};
use super::worker::Worker;
use crate::events::{Events, Time};
use crate::random::Random;

pub(super) type ThreadId = usize;

/// How often `progress` is called.
const PROGRESS_EVERY: u64 = 4_096;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    Tick {
        cpu: usize,
    },
    /// The stage of the thread that runs there is over.
    End {
        cpu: usize,
        generation: u64,
    },
    /// A thread's timer goes off.
    Timer {
        thread: ThreadId,
        nap: u64,
    },
    /// A reader for which a driver sleeps leaves its section.
    Leaves {
        reader: ReaderId,
        generation: u64,
    },
    /// From now on things are counted.
    Counts,
    /// The run is over.
    Ends,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// None: the library's worker, or liburcu's thread.
    pub(super) role: Option<Role>,
    pub(super) random: Random,
    pub(super) reader: Option<ReaderId>,
    /// Where it ran last.
    pub(super) cpu: Option<usize>,
    pub(super) asleep: bool,
    /// Which timer is the current one.
    pub(super) naps: u64,
    /// What is left of its stage, and what that is.
    pub(super) left_ns: Time,
    pub(super) spends: Spending,
    /// By how much longer the stage takes.
    pub(super) extend_ns: Time,
    /// How much of its time is not its own.
    pub(super) lost_ns: Time,
    /// CPU time, all in all, and what of it was its own work.
    pub(super) cpu_ns: Time,
    pub(super) own_ns: Time,
}

pub(super) struct World<'a> {
    pub(super) options: &'a Options,
    pub(super) events: Events<Happening>,
    pub(super) jiffy_ns: Time,
    pub(super) cpus: Vec<Cpu>,
    /// CPUs without a thread.
    pub(super) idle: BTreeSet<usize>,
    /// CPUs that are to be looked at.
    pub(super) noted: Vec<usize>,
    pub(super) threads: Vec<Thread>,
    /// Threads that do not sleep.
    pub(super) awake: usize,
    pub(super) readers: Vec<Reader>,
    pub(super) domain: Domain,
    pub(super) callbacks: Callbacks,
    pub(super) worker: Worker,
    pub(super) liburcu: Liburcu,
    /// The CPU of the thread that takes a step.
    pub(super) steps_at: Option<usize>,
    /// What the thread that takes a step has to pay before its next stage.
    pub(super) pending_ns: Time,
    /// What has been counted: a report in the making.
    pub(super) counted: Report,
    pub(super) times: Times,
}

impl<'a> World<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        let mut random = Random::new(options.seed);
        let mut world = Self {
            options,
            events: Events::default(),
            jiffy_ns: 1_000_000_000 / u64::from(options.hz),
            cpus: vec![Cpu::new(options.scheduler()); options.cpus],
            idle: (0..options.cpus).collect(),
            noted: Vec::new(),
            threads: Vec::new(),
            awake: 0,
            readers: Vec::new(),
            domain: Domain::new(options.algorithm),
            callbacks: Callbacks::default(),
            worker: Worker::default(),
            liburcu: Liburcu::default(),
            steps_at: None,
            pending_ns: 0,
            counted: Report::default(),
            times: Times::default(),
        };
        for group in &options.threads {
            for _ in 0..group.count {
                world.add(group.role, random.split());
            }
        }
        world.worker.thread = world.add_thread(None, random.split());
        for id in 0..world.threads.len() {
            if world.threads[id].role != Some(Role::Idle) {
                world.wake(id);
            }
        }
        world.events.at(options.warm_up, Happening::Counts);
        world.events.at(options.warm_up + options.duration, Happening::Ends);
        world.settle();
        world
    }

    fn add(&mut self, role: Role, mut random: Random) {
        let reader_random = random.split();
        let id = self.add_thread(Some(role), random);
        let kind = match role {
            Role::Reads { section_ns, gap_ns, .. } | Role::Comes { section_ns, gap_ns, .. } => {
                Kind::Sections { section_ns, gap_ns }
            }
            Role::Qsbr { turn_ns, .. } => Kind::Qsbr { turn_ns },
            Role::Blocks { .. } => Kind::Explicit,
            Role::Idle | Role::Waits { reads: true, .. } => Kind::Quiet,
            _ => return,
        };
        let reader = self.readers.len();
        self.readers.push(Reader::new(kind, reader_random));
        self.threads[id].reader = Some(reader);
        if role.is_registered() {
            self.register(reader);
        }
    }

    fn add_thread(&mut self, role: Option<Role>, random: Random) -> ThreadId {
        self.threads.push(Thread { role, random, asleep: true, ..Thread::default() });
        self.threads.len() - 1
    }

    /// Returns the thread whose stage is over then, and its CPU: it goes on.
    fn happens(&mut self, happening: Happening) -> Option<(usize, ThreadId)> {
        match happening {
            Happening::Tick { cpu } => self.tick(cpu),
            Happening::End { cpu, generation } => return self.end(cpu, generation),
            Happening::Timer { thread, nap } => {
                if self.threads[thread].naps == nap {
                    self.wake(thread);
                }
            }
            Happening::Leaves { reader, generation } => self.leaves(reader, generation),
            Happening::Counts => self.begin_counting(),
            // No event is later.
            Happening::Ends => {}
        }
        None
    }

    fn account_all(&mut self) {
        (0..self.cpus.len()).for_each(|cpu| self.account(cpu));
    }

    fn begin_counting(&mut self) {
        self.account_all();
        (self.counted, self.times) = Default::default();
        self.counted.callbacks.waiting_peak = self.callbacks.waiting.objects;
        self.counted.callbacks.waiting_bytes_peak = self.callbacks.waiting.bytes;
        self.threads.iter_mut().for_each(|thread| thread.own_ns = 0);
    }

    /// The thread that takes a step spends CPU time, with what it has to pay besides. Returns
    /// whether there is any to spend.
    fn spend(&mut self, id: ThreadId, ns: Time, spends: Spending) -> bool {
        let left_ns = ns.saturating_add(mem::take(&mut self.pending_ns));
        if left_ns != 0 {
            (self.threads[id].left_ns, self.threads[id].spends) = (left_ns, spends);
        }
        left_ns != 0
    }

    fn sleep(&mut self, id: ThreadId) {
        let pending_ns = mem::take(&mut self.pending_ns) + ns(self.options.costs.syscall);
        let thread = &mut self.threads[id];
        thread.asleep = true;
        thread.naps += 1;
        thread.left_ns = pending_ns;
    }

    fn sleep_for(&mut self, id: ThreadId, ns: Time) {
        self.sleep(id);
        let nap = self.threads[id].naps;
        self.events.after(ns, Happening::Timer { thread: id, nap });
    }

    /// The thread that takes a step wakes another one, and pays for it.
    pub(super) fn wake_at_cost(&mut self, id: ThreadId) {
        if self.threads[id].asleep {
            self.wake(id);
            let near = self.threads[id].cpu == self.steps_at;
            self.pending_ns += self.options.costs.wake_ns(near);
        }
    }

    /// A `membarrier` by this thread. Returns how long it takes.
    pub(super) fn membarrier(&mut self, id: ThreadId) -> Time {
        self.counted.membarriers += 1;
        let others = self.interrupt_others(id);
        self.options.costs.membarrier_ns(others)
    }

    pub(super) fn report(&self) -> Report {
        let counted = self.counted.clone();
        Report {
            duration_ns: self.options.duration,
            cpus: self.options.cpus,
            reads: self.threads.iter().map(|thread| reads(thread.role, thread.own_ns)).sum(),
            waits_ns: self.times.waits.summary(),
            waits_expedited_ns: self.times.waits_expedited.summary(),
            waits_at_limit_ns: self.times.waits_at_limit.summary(),
            callbacks: ReportedCallbacks {
                age_ns: self.times.callback_ages.summary(),
                ..counted.callbacks
            },
            ..counted
        }
    }
}

/// A thread, as what it does has it.
#[derive(Clone, Copy)]
pub(super) struct Me<'w, 'a> {
    world: &'w RefCell<World<'a>>,
    pub(super) id: ThreadId,
}

impl<'w, 'a> Me<'w, 'a> {
    /// The world, for a moment: no thread holds it where it stops.
    pub(super) fn world(self) -> RefMut<'w, World<'a>> {
        self.world.borrow_mut()
    }

    pub(super) fn now(self) -> Time {
        self.world.borrow().events.now()
    }

    pub(super) fn options(self) -> &'a Options {
        self.world.borrow().options
    }

    pub(super) fn costs(self) -> &'a Costs {
        &self.options().costs
    }

    pub(super) async fn spend(self, ns: Time, spends: Spending) {
        if self.world().spend(self.id, ns, spends) {
            stop().await;
        }
    }

    /// Sleeps until it is woken.
    pub(super) async fn sleep(self) {
        self.world().sleep(self.id);
        stop().await;
    }

    /// Sleeps until it is woken, or its timer goes off after so long.
    pub(super) async fn sleep_for(self, ns: Time) {
        self.sleep_at_most(ns + self.costs().timer_slack_ns).await;
    }

    /// Sleeps until it is woken, at the latest by a thread that is not simulated after so long.
    pub(super) async fn sleep_at_most(self, ns: Time) {
        self.world().sleep_for(self.id, ns);
        stop().await;
    }

    /// What it does, for ever.
    async fn live(self) {
        let role = self.world().threads[self.id].role;
        match (role, self.options().algorithm) {
            (Some(role), _) => self.play(role).await,
            (None, Algorithm::Library { .. }) => self.work().await,
            (None, Algorithm::Liburcu) => self.run_callbacks().await,
        }
    }
}

/// Stops once.
async fn stop() {
    let mut has_stopped = false;
    poll_fn(|_| match mem::replace(&mut has_stopped, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

/// Runs the world to its end, or until `progress` breaks it off.
pub(super) fn run(
    world: &RefCell<World<'_>>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let of = |id| -> Pin<Box<dyn Future<Output = ()>>> { Box::pin(Me { world, id }.live()) };
    let count = world.borrow().threads.len();
    let mut threads: Vec<_> = (0..count).map(of).collect();
    let until = world.borrow().options.warm_up + world.borrow().options.duration;
    let mut happened = 0_u64;
    loop {
        let next = world.borrow_mut().events.next(until);
        let Some(happening) = next.filter(|next| *next != Happening::Ends) else { break };
        let goes_on = world.borrow_mut().happens(happening);
        if let Some((cpu, id)) = goes_on {
            let _ = threads[id].as_mut().poll(&mut Context::from_waker(Waker::noop()));
            world.borrow_mut().after_step(cpu, id);
        }
        world.borrow_mut().settle();
        happened += 1;
        if happened.is_multiple_of(PROGRESS_EVERY) {
            progress(world.borrow().events.now())?;
        }
    }
    world.borrow_mut().account_all();
    ControlFlow::Continue(())
}
