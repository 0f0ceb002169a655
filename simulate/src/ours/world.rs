//! Events, and the threads: what a thread does next.
//!
//! A thread has a stack of *frames*. A step of the top frame says what comes next: some nanoseconds
//! of CPU time, a sleep, a frame of another kind, or the frame's end. A step takes effect at the
//! moment of its call, and the next one is called when that time has passed.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::callbacks::{Callbacks, Close, Run, Settle, Tend};
use super::costs::ns;
use super::cpus::Cpu;
use super::driving::{Domain, Drive, Wait};
use super::handover::LooksOn;
use super::liburcu::{CallThread, Liburcu, Synchronize};
use super::options::{Algorithm, Options, Role};
use super::readers::{Kind, Reader, ReaderId};
use super::report::{Callbacks as ReportedCallbacks, Report, Spending, Times, reads};
use super::roles::RoleFrame;
use super::worker::{Worker, WorkerFrame};
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

/// What a step of a frame leads to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Spend(Time, Spending),
    /// Until it is woken.
    Sleep,
    /// Until it is woken, or its timer goes off after so long.
    SleepFor(Time),
    /// Until it is woken, at the latest by a thread that is not simulated after so long.
    SleepAtMost(Time),
    Call(Frame),
    Done,
}

/// What a thread is at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    Role(RoleFrame),
    Wait(Wait),
    LooksOn(LooksOn),
    Drive(Drive),
    Close(Close),
    Run(Run),
    Tend(Tend),
    Settle(Settle),
    Worker(WorkerFrame),
    Synchronize(Synchronize),
    CallThread(CallThread),
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) role: Option<Role>,
    pub(super) stack: Vec<Frame>,
    /// What the frame that was called last gives back.
    pub(super) result: u64,
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
    /// A fault that a test puts in: the last reader of the list is not scanned.
    #[cfg(test)]
    pub(super) skips_last_reader: bool,
}

impl<'a> World<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        let mut random = Random::new(options.seed);
        let mut world = Self {
            options,
            events: Events::new(),
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
            #[cfg(test)]
            skips_last_reader: false,
        };
        for group in &options.threads {
            for _ in 0..group.count {
                world.add(group.role, random.split());
            }
        }
        let frame = match options.algorithm {
            Algorithm::Library { .. } => Frame::Worker(WorkerFrame::default()),
            Algorithm::Liburcu => Frame::CallThread(CallThread::NEW),
        };
        let worker = world.add_thread(None, frame, random.split());
        world.worker.thread = worker;
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
        let id = self.add_thread(Some(role), Frame::Role(RoleFrame::NEW), random);
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

    fn add_thread(&mut self, role: Option<Role>, frame: Frame, random: Random) -> ThreadId {
        self.threads.push(Thread {
            role,
            stack: vec![frame],
            random,
            asleep: true,
            ..Thread::default()
        });
        self.threads.len() - 1
    }

    pub(super) fn run(
        &mut self,
        progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let until = self.options.warm_up + self.options.duration;
        let mut happened = 0_u64;
        while let Some(happening) = self.events.next(until) {
            match happening {
                Happening::Tick { cpu } => self.tick(cpu),
                Happening::End { cpu, generation } => self.end(cpu, generation),
                Happening::Timer { thread, nap } => {
                    if self.threads[thread].naps == nap {
                        self.wake(thread);
                    }
                }
                Happening::Leaves { reader, generation } => self.leaves(reader, generation),
                Happening::Counts => self.begin_counting(),
                Happening::Ends => break,
            }
            self.settle();
            happened += 1;
            if happened.is_multiple_of(PROGRESS_EVERY) {
                progress(self.events.now())?;
            }
        }
        self.account_all();
        ControlFlow::Continue(())
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

    /// Takes steps until the thread has something to spend time on, or sleeps.
    pub(super) fn proceed(&mut self, id: ThreadId) {
        self.steps_at = self.threads[id].cpu;
        loop {
            match self.step(id) {
                Next::Spend(ns, spends) => {
                    let ns = ns.saturating_add(std::mem::take(&mut self.pending_ns));
                    if ns == 0 {
                        continue;
                    }
                    self.threads[id].left_ns = ns;
                    self.threads[id].spends = spends;
                    return;
                }
                Next::Sleep => return self.sleep(id),
                Next::SleepFor(ns) => {
                    return self.sleep_for(id, ns + self.options.costs.timer_slack_ns);
                }
                Next::SleepAtMost(ns) => return self.sleep_for(id, ns),
                Next::Call(frame) => self.threads[id].stack.push(frame),
                Next::Done => _ = self.threads[id].stack.pop(),
            }
        }
    }

    fn sleep(&mut self, id: ThreadId) {
        let pending_ns = std::mem::take(&mut self.pending_ns) + ns(self.options.costs.syscall);
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

    fn step(&mut self, id: ThreadId) -> Next {
        let top = self.threads[id].stack.len() - 1;
        let mut frame = self.threads[id].stack[top];
        let next = match &mut frame {
            Frame::Role(frame) => self.role_step(id, frame),
            Frame::Wait(frame) => self.wait_step(frame),
            Frame::LooksOn(frame) => self.look_on(id, frame),
            Frame::Drive(frame) => self.drive_step(id, frame),
            Frame::Close(frame) => self.close_step(frame),
            Frame::Run(frame) => self.run_step(id, frame),
            Frame::Tend(frame) => self.tend_step(id, frame),
            Frame::Settle(frame) => self.settle_step(id, frame),
            Frame::Worker(frame) => self.worker_step(id, frame),
            Frame::Synchronize(frame) => self.synchronize_step(id, frame),
            Frame::CallThread(frame) => self.call_thread_step(id, frame),
        };
        self.threads[id].stack[top] = frame;
        next
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
