//! The caller, the worker, the task that runs the callbacks, and the CPUs they share.
//!
//! A task works in *stages*, each of some nanoseconds of CPU time. A stage takes effect at its end.
//! A task that is preempted keeps the rest of its stage.

mod balancer;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use grace::Urgency;
use grace::srcu::{Action, AnyDelay, Cookie, Event, Sequence, SrcuMachine, Wait};

use super::options::{Options, Placement};
use super::report::{Record, Report};
use super::scheduler::{RunQueue, TaskId};
use crate::events::{Events, Time};
use crate::random::Random;

const CALLER: TaskId = 0;
const WORKER: TaskId = 1;
/// Runs callbacks on the boot CPU, where that is not the worker's.
const BOOT_WORKER: TaskId = 2;
const TASKS: usize = 3;

/// Where callbacks run, unless the worker has a CPU of its own.
const BOOT_CPU: usize = 0;

/// What is short and has no option of its own: the flip, and handing callbacks out.
const SHORT_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Tick,
    /// The stage of the task that runs on this CPU is over, if nothing came in between.
    End {
        cpu: usize,
        generation: u64,
    },
    /// The worker's high-resolution timer.
    Nap,
    BlockedEnters,
    BlockedLeaves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The caller, on its own behalf, in user mode.
    Work,
    /// In its section, up to the request.
    Enqueue,
    /// In its section, after the request.
    Leave,
    /// A worker looks whether there is work.
    Fetch,
    /// A run begins.
    Run,
    Check,
    Spin,
    Flip,
    HandOut,
    Callbacks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    GracePeriod,
    Callbacks,
}

#[derive(Clone, Debug)]
struct Task {
    cpu: usize,
    stage: Stage,
    left_ns: u64,
    asleep: bool,
    /// What a worker has to do.
    works: VecDeque<Work>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    queue: RunQueue,
    should_switch: bool,
    end_at: Option<Time>,
    generation: u64,
}

pub(super) struct World<'a> {
    options: &'a Options,
    events: Events<Happening>,
    random: Random,
    machine: SrcuMachine<AnyDelay>,
    cpus: Vec<Cpu>,
    tasks: Vec<Task>,
    jiffy: u64,
    /// When the timer wheel queues the worker, and the callbacks.
    worker_at_jiffy: Option<u64>,
    callbacks_at_jiffy: Option<u64>,
    /// Readers that are in each index now.
    inside: [u32; 2],
    /// When the readers on other CPUs that were in each index at the last flip are gone.
    clear_at: [Time; 2],
    caller_index: u8,
    blocked_index: u8,
    call_began: Time,
    /// What the caller waits for.
    waits_for: Option<Cookie>,
    last_end: Time,
    record: Record,
}

impl<'a> World<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        let cpus = options.cpus as usize;
        let home = cpus.min(2) - 1;
        let worker = if options.placement == Placement::WithCaller { home } else { BOOT_CPU };
        let places = [home, worker, BOOT_CPU];
        let cpu = Cpu { queue: RunQueue::new(options.scheduler), ..Cpu::default() };
        let task = |task: usize| Task {
            cpu: places[task],
            stage: if task == CALLER { Stage::Work } else { Stage::Fetch },
            left_ns: 0,
            asleep: true,
            works: VecDeque::new(),
        };
        let mut world = Self {
            options,
            events: Events::default(),
            random: Random::new(options.seed),
            machine: SrcuMachine::new(options.delay, Sequence::after(0)),
            cpus: vec![cpu; cpus],
            tasks: (0..TASKS).map(task).collect(),
            jiffy: 0,
            worker_at_jiffy: None,
            callbacks_at_jiffy: None,
            inside: [0; 2],
            clear_at: [0; 2],
            caller_index: 0,
            blocked_index: 0,
            call_began: 0,
            waits_for: None,
            last_end: 0,
            record: Record::default(),
        };
        world.cpus[home].queue.add(CALLER);
        for task in [WORKER, BOOT_WORKER] {
            world.cpus[places[task]].queue.add_sleeper(task);
        }
        world.events.after(options.jiffy_ns(), Happening::Tick);
        if let Some(blocked) = options.blocked {
            world.events.at(blocked.from_ns, Happening::BlockedEnters);
        }
        world.begin_work();
        world.wake(CALLER);
        world.settle();
        world
    }

    pub(super) fn run(
        mut self,
        progress: &mut dyn FnMut(u32) -> ControlFlow<()>,
    ) -> Option<Report> {
        while self.record.report.calls < self.options.calls {
            let Some(happening) = self.events.next(self.options.limit_ns) else { break };
            match happening {
                Happening::Tick if progress(self.record.report.calls).is_break() => return None,
                Happening::Tick => self.tick(),
                Happening::End { cpu, generation } => self.end(cpu, generation),
                Happening::Nap => self.give(WORKER, Work::GracePeriod),
                Happening::BlockedEnters => self.blocked_enters(),
                Happening::BlockedLeaves => self.inside[usize::from(self.blocked_index)] -= 1,
            }
            self.settle();
        }
        let unfinished = self.record.report.calls < self.options.calls;
        let now = if unfinished { self.options.limit_ns } else { self.events.now() };
        Some(self.record.finish(self.options.calls, now))
    }

    fn tick(&mut self) {
        self.jiffy += 1;
        self.machine.tick(1);
        let now = self.events.now();
        for at in self.places() {
            let cpu = &mut self.cpus[at];
            cpu.should_switch |= cpu.queue.tick(now);
        }
        self.balance();
        if self.worker_at_jiffy.is_some_and(|at| at <= self.jiffy) {
            self.worker_at_jiffy = None;
            self.give(WORKER, Work::GracePeriod);
        }
        if self.callbacks_at_jiffy.is_some_and(|at| at <= self.jiffy) {
            self.callbacks_at_jiffy = None;
            self.give(self.boot_worker(), Work::Callbacks);
        }
        self.events.at((self.jiffy + 1) * self.options.jiffy_ns(), Happening::Tick);
    }

    fn blocked_enters(&mut self) {
        if let Some(blocked) = self.options.blocked {
            self.blocked_index = self.machine.current_index();
            self.inside[usize::from(self.blocked_index)] += 1;
            self.events.after(blocked.for_ns, Happening::BlockedLeaves);
        }
    }

    /// The task that runs callbacks: on the worker's CPU the worker, since a CPU runs one of its
    /// works at a time.
    fn boot_worker(&self) -> TaskId {
        if self.tasks[WORKER].cpu == BOOT_CPU { WORKER } else { BOOT_WORKER }
    }

    /// The CPUs that have tasks, each once, in order.
    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let mut places: [usize; TASKS] = core::array::from_fn(|task| self.tasks[task].cpu);
        places.sort_unstable();
        let is_first = move |at: &usize| *at == 0 || places[*at] != places[*at - 1];
        (0..TASKS).filter(is_first).map(move |at| places[at])
    }

    /// Work for a worker; wakes it.
    fn give(&mut self, task: TaskId, work: Work) {
        self.tasks[task].works.push_back(work);
        self.wake(task);
    }

    fn wake(&mut self, task: TaskId) {
        if !core::mem::take(&mut self.tasks[task].asleep) {
            return;
        }
        let now = self.events.now();
        if task == CALLER {
            self.place_caller();
        }
        let cpu = &mut self.cpus[self.tasks[task].cpu];
        if cpu.queue.current().is_none() {
            self.tasks[task].left_ns += self.options.wake_ns;
        }
        cpu.should_switch |= cpu.queue.wake(task, now);
        if task == WORKER {
            self.record.awake_since = Some(now);
        }
    }

    /// The task that runs on `cpu` goes to sleep.
    fn sleep(&mut self, task: TaskId) {
        let now = self.events.now();
        self.tasks[task].asleep = true;
        self.cpus[self.tasks[task].cpu].queue.sleep(now);
        if task == WORKER {
            self.record.worker_sleeps(now);
        }
    }

    /// Lets every CPU run whom it should.
    fn settle(&mut self) {
        let now = self.events.now();
        for at in self.places() {
            let current = self.cpus[at].queue.current();
            let may_switch = current.is_none_or(|task| self.is_preemptible(task));
            if current.is_none() || (self.cpus[at].should_switch && may_switch) {
                self.interrupt(at);
                self.cpus[at].should_switch = false;
                self.cpus[at].queue.choose(now);
            }
            let cpu = &mut self.cpus[at];
            if let Some(task) = cpu.queue.current()
                && cpu.end_at.is_none()
            {
                let end_at = now + self.tasks[task].left_ns;
                cpu.end_at = Some(end_at);
                cpu.generation += 1;
                self.events.at(end_at, Happening::End { cpu: at, generation: cpu.generation });
                if task == WORKER {
                    self.record.runs_since = Some(now);
                }
            }
        }
    }

    /// The task that runs on a CPU keeps what is left of its stage.
    fn interrupt(&mut self, at: usize) {
        let now = self.events.now();
        let cpu = &mut self.cpus[at];
        if let (Some(task), Some(end_at)) = (cpu.queue.current(), cpu.end_at.take()) {
            self.tasks[task].left_ns = end_at - now;
            cpu.generation += 1;
            if task == WORKER {
                self.record.worker_stops(now);
            }
        }
    }

    /// In a kernel that is not preemptible a task gives way in user mode, and a worker between
    /// works.
    fn is_preemptible(&self, task: TaskId) -> bool {
        self.options.preempt || matches!(self.tasks[task].stage, Stage::Work | Stage::Fetch)
    }

    fn end(&mut self, at: usize, generation: u64) {
        if self.cpus[at].generation != generation || self.cpus[at].end_at.is_none() {
            return;
        }
        self.cpus[at].end_at = None;
        let Some(task) = self.cpus[at].queue.current() else { return };
        self.tasks[task].left_ns = 0;
        if task == WORKER {
            self.record.worker_stops(self.events.now());
        }
        match self.tasks[task].stage {
            Stage::Work | Stage::Enqueue | Stage::Leave => self.caller_goes_on(),
            stage => self.worker_goes_on(task, stage),
        }
    }

    fn goto(&mut self, task: TaskId, stage: Stage, ns: u64) {
        self.tasks[task].stage = stage;
        self.tasks[task].left_ns = ns;
    }

    fn begin_work(&mut self) {
        let work = self.random.about(self.options.caller_work_ns);
        self.goto(CALLER, Stage::Work, work);
    }

    fn caller_goes_on(&mut self) {
        match self.tasks[CALLER].stage {
            Stage::Work => {
                self.call_began = self.events.now();
                self.caller_index = self.machine.current_index();
                self.inside[usize::from(self.caller_index)] += 1;
                self.goto(CALLER, Stage::Enqueue, self.options.enqueue_ns);
            }
            Stage::Enqueue => {
                let idle_ns = self.events.now() - self.last_end;
                let urgency = if self.options.expedited {
                    Urgency::Expedited
                } else {
                    self.machine.urgency_of_synchronize(idle_ns)
                };
                self.waits_for = Some(self.machine.request(urgency));
                self.place_worker();
                self.goto(CALLER, Stage::Leave, self.options.enqueue_ns);
                self.queue();
            }
            _ => {
                self.inside[usize::from(self.caller_index)] -= 1;
                if self.waits_for.is_some() {
                    self.sleep(CALLER);
                } else {
                    self.begin_work();
                }
            }
        }
    }

    /// Queues the worker, if the machine wants that.
    fn queue(&mut self) {
        let Action::Queue(wait) = self.machine.pending() else { return };
        self.tell(Event::Queued);
        match wait {
            Wait::Jiffies(0) | Wait::Microseconds(0) => self.give(WORKER, Work::GracePeriod),
            // A timer goes into the bucket after the one it names.
            Wait::Jiffies(jiffies) => {
                self.record.report.sleeps += 1;
                self.worker_at_jiffy = Some(self.jiffy + u64::from(jiffies) + 1);
            }
            Wait::Microseconds(microseconds) => {
                self.record.report.naps += 1;
                self.events.after(u64::from(microseconds) * 1_000, Happening::Nap);
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.machine.observe(event).expect("it answers the pending action");
    }

    fn worker_goes_on(&mut self, task: TaskId, stage: Stage) {
        match stage {
            Stage::Fetch => return self.fetch(task),
            Stage::Callbacks => return self.run_callbacks(task),
            Stage::Run => self.tell(Event::Runs),
            Stage::Check => {
                let drained = self.is_drained();
                self.record.report.checks += 1;
                self.record.report.checks_failed += u64::from(!drained);
                self.tell(Event::Checked { drained });
            }
            Stage::Spin => self.tell(Event::Spun),
            Stage::Flip => {
                self.draw_readers();
                self.tell(Event::Flipped);
            }
            _ => {
                if let Action::HandOut { delay_jiffies, .. } = self.machine.pending() {
                    self.hand_out(delay_jiffies);
                }
                self.tell(Event::HandedOut);
            }
        }
        match self.machine.pending() {
            Action::Check { .. } => self.goto(task, Stage::Check, self.options.check_ns),
            Action::Spin { microseconds } => {
                self.goto(task, Stage::Spin, u64::from(microseconds) * 1_000);
            }
            Action::Flip { .. } => self.goto(task, Stage::Flip, SHORT_NS),
            Action::HandOut { .. } => self.goto(task, Stage::HandOut, SHORT_NS),
            Action::Idle | Action::Await | Action::Queue(_) => {
                self.goto(task, Stage::Fetch, 0);
                self.queue();
            }
        }
    }

    fn fetch(&mut self, task: TaskId) {
        match self.tasks[task].works.pop_front() {
            None => self.sleep(task),
            Some(Work::GracePeriod) => {
                self.record.report.runs += 1;
                self.goto(task, Stage::Run, self.options.run_ns);
            }
            Some(Work::Callbacks) => {
                self.goto(task, Stage::Callbacks, self.options.callbacks_ns);
            }
        }
    }

    fn is_drained(&self) -> bool {
        let Action::Check { index } = self.machine.pending() else { return false };
        let index = usize::from(index);
        self.inside[index] == 0 && self.events.now() >= self.clear_at[index]
    }

    /// At the flip: how long the readers on other CPUs stay in the index that was current.
    fn draw_readers(&mut self) {
        let readers = self.options.readers;
        let all_ns = readers.inside_ns + readers.outside_ns;
        let index = usize::from(self.machine.current_index());
        let mut longest = 0;
        for _ in 0..readers.count {
            if self.random.below(all_ns) < readers.inside_ns {
                longest = longest.max(self.random.exponential(readers.inside_ns));
            }
        }
        self.clear_at[index] = self.events.now() + longest;
    }

    fn hand_out(&mut self, delay_jiffies: u32) {
        let now = self.events.now();
        self.last_end = now;
        self.record.report.grace_periods += 1;
        self.record.report.callbacks_delayed += u64::from(delay_jiffies > 0);
        if delay_jiffies == 0 {
            self.give(self.boot_worker(), Work::Callbacks);
        } else {
            let at = self.jiffy + u64::from(delay_jiffies) + 1;
            self.callbacks_at_jiffy = Some(self.callbacks_at_jiffy.map_or(at, |old| old.min(at)));
        }
    }

    fn run_callbacks(&mut self, task: TaskId) {
        if self.waits_for.is_some_and(|cookie| self.machine.sequence().is_done(cookie)) {
            self.waits_for = None;
            self.record.call(self.events.now() - self.call_began);
            if self.tasks[CALLER].asleep {
                self.begin_work();
                self.wake(CALLER);
            }
        }
        self.goto(task, Stage::Fetch, 0);
    }
}
