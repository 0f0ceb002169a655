//! An engine's environment: CPUs, cache lines, queues of callbacks, one timer.
//!
//! A call of the engine happens on one CPU, at that CPU's own time, and takes some of it: the cost
//! of the lines that it accesses, the interrupts that it sends and the callbacks that it invokes is
//! added up during the call ([`World::open`]), and charged at its end ([`World::close`]). What it
//! demands of other CPUs becomes events. No decision is made here.

use std::collections::VecDeque;

use kernel::engine::{Access, Host, Line};

use crate::cost::{PICOS, Picos};
use crate::cpu::{Category, Cpu, Window};
use crate::events::{Events, Time};
use crate::line::{Directory, Traffic};
use crate::memory::{Memory, SlabUse};
use crate::random::Random;
use crate::setup::Setup;
use crate::tally::Tally;
use crate::timeline::Timeline;

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A CPU's stretch ends, unless its ticket is another one by now.
    StretchEnds { cpu: u32, ticket: u32 },
    /// The engine's timer expires, unless it has been set again.
    TimerExpires { ticket: u32 },
    /// A kernel thread of the CPU wants to run for a moment.
    Background { cpu: u32 },
    /// The idle loop looks whether callbacks wait, unless the stretch is another one by now.
    IdleLook { cpu: u32, ticket: u32 },
    /// Waiting callbacks are counted, and progress is reported to the caller of the simulation.
    Sample,
    /// Something comes to a CPU, as soon as it has interrupts on.
    On { cpu: u32, what: Happening },
}

/// What comes to a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    /// An inter-CPU interrupt: pass through the scheduler.
    Reschedule,
    /// An inter-CPU interrupt: run softirqs.
    Raise,
    /// It has come out of the section it was in when it was to schedule.
    Preemptible,
    /// It runs its softirqs, or lets ksoftirqd run; unless that was to be at another time.
    Softirq { ticket: u32 },
    /// The engine's thread has it.
    Thread { ticket: u32 },
    /// A task that waited is runnable.
    Wake,
}

/// Callbacks that one CPU queued at one moment.
#[derive(Clone, Copy, Debug)]
struct Queued {
    at: Time,
    count: u64,
    bytes: u32,
    /// The step of the run at which they were queued.
    step: u64,
    /// Whether the task of that CPU waits for it.
    waited_for: bool,
}

/// The CPU time that the engine may have in the background: fills with time, empties with work.
#[derive(Clone, Copy, Debug, Default)]
struct BudgetCredit {
    /// Picoseconds of credit.
    credit: i128,
    filled_at: Time,
}

/// Over how long the budget may be saved up, or exceeded, in nanoseconds.
const BUDGET_SPAN: Time = 100_000_000;

/// On machines of up to so many CPUs every batch is checked for being run too early.
const OVERSEEN_MAX: usize = 64;

/// What an engine finds around it.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) setup: Setup,
    pub(crate) window: Window,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) events: Events<Event>,
    pub(crate) directory: Directory,
    /// Where the objects of callbacks come from, if that is modelled.
    pub(crate) memory: Option<Memory>,
    pub(crate) tally: Tally,
    pub(crate) timeline: Timeline,
    /// The timer's number: what was asked before has another one.
    pub(crate) timer_ticket: u32,
    queues: Vec<VecDeque<Queued>>,
    /// Callbacks that wait, over all CPUs.
    pub(crate) waiting: u64,
    waiting_bytes: u64,
    /// Tasks that wait for a callback of theirs.
    tasks_waiting: u64,
    budget: BudgetCredit,
    /// Goes up with all that an engine must not confuse the order of.
    step: u64,
    /// Whose call of the engine is going on.
    current: usize,
    /// Whether some task waited when it began.
    is_waited_for: bool,
    /// What it has cost so far: the engine itself, and callbacks.
    spent: Picos,
    spent_callbacks: Picos,
}

impl World {
    pub(crate) fn new(setup: &Setup, memory: Option<Memory>) -> Self {
        let mut random = Random::new(setup.seed);
        Self {
            window: Window { from: setup.warm_up, to: setup.end() },
            cpus: (0..setup.cpus).map(|_| Cpu::new(random.split())).collect(),
            directory: Directory::new(setup.cpus),
            memory,
            timeline: Timeline::new(setup.timeline),
            queues: vec![VecDeque::new(); setup.cpus],
            setup: setup.clone(),
            ..Self::default()
        }
    }

    /// Whether things are counted at this time.
    pub(crate) const fn is_counted(&self, now: Time) -> bool {
        now >= self.window.from && now < self.window.to
    }

    /// The warm-up is over.
    pub(crate) fn begin_counting(&mut self) {
        self.directory.traffic = Traffic::default();
        self.memory.iter_mut().for_each(|memory| memory.seen = SlabUse::default());
        self.tally.callbacks.waiting_peak = self.waiting;
        self.tally.callbacks.waiting_bytes_peak = self.waiting_bytes;
    }

    /// An engine's call begins on `cpu`.
    pub(crate) fn open(&mut self, cpu: usize, cost: Picos) {
        self.current = cpu;
        self.directory.clock = self.events.now();
        self.is_waited_for = self.tasks_waiting != 0;
        self.spent = cost;
        self.spent_callbacks = 0;
    }

    /// It has ended: the CPU has spent the time.
    pub(crate) fn close(&mut self) {
        let cpu = &mut self.cpus[self.current];
        let at = cpu.at;
        cpu.charge(Category::Engine, self.spent, self.window);
        cpu.charge(Category::Callback, self.spent_callbacks, self.window);
        self.account(at, self.spent, self.is_waited_for || self.tasks_waiting != 0);
    }

    /// `cpu` works for the engine, outside of its calls.
    pub(crate) fn charge_engine(&mut self, cpu: usize, cost: Picos) {
        let at = self.cpus[cpu].at;
        self.cpus[cpu].charge(Category::Engine, cost, self.window);
        self.account(at, cost, self.tasks_waiting != 0);
    }

    /// Engine time is taken from the budget, unless some task waits: then it is that task's, as it
    /// would be if the task did the work itself.
    fn account(&mut self, at: Time, cost: Picos, is_waited_for: bool) {
        if is_waited_for {
            return;
        }
        self.budget.credit -= i128::from(cost);
        if self.is_counted(at) {
            self.tally.background_picos += cost;
        }
    }

    /// `cpu` works in the kernel besides what its task does.
    pub(crate) fn charge_kernel(&mut self, cpu: usize, cost: Picos) {
        self.cpus[cpu].charge(Category::Kernel, cost, self.window);
    }

    /// Something will come to `cpu`.
    pub(crate) fn on(&mut self, at: Time, cpu: usize, what: Happening) {
        self.events.at(at, Event::On { cpu: cpu as u32, what });
    }

    /// What is on the clock of the CPU whose call is going on.
    fn now(&self) -> Time {
        self.cpus[self.current].time_after(self.spent + self.spent_callbacks)
    }

    /// Puts callbacks into the queue of `cpu`.
    pub(crate) fn enqueue(&mut self, cpu: usize, count: u64, bytes: u32, waited_for: bool) {
        let at = self.cpus[cpu].at;
        self.step += 1;
        self.queues[cpu].push_back(Queued { at, count, bytes, step: self.step, waited_for });
        self.waiting += count;
        self.tasks_waiting += u64::from(waited_for);
        self.waiting_bytes += count * u64::from(bytes);
        if self.is_counted(at) {
            self.tally.callbacks.queued += count;
            self.tally.callbacks.waiting_peak = self.tally.callbacks.waiting_peak.max(self.waiting);
            self.tally.callbacks.waiting_bytes_peak =
                self.tally.callbacks.waiting_bytes_peak.max(self.waiting_bytes);
        }
    }

    /// `cpu` is in no read-side critical section.
    pub(crate) fn is_quiescent(&mut self, cpu: usize, at: Time) {
        self.step += 1;
        self.cpus[cpu].quiescent_at = at;
        self.cpus[cpu].quiescent_step = self.step;
    }

    /// Whether every CPU has been quiescent since this step. Not asked on large machines, where
    /// it would take too long.
    fn all_quiescent_since(&self, step: u64) -> bool {
        self.cpus.len() > OVERSEEN_MAX
            || self.cpus.iter().all(|cpu| cpu.in_eqs || cpu.quiescent_step > step)
    }

    /// The task of `cpu` allocates the objects of callbacks that it queues next.
    pub(crate) fn allocate(&mut self, cpu: usize, count: u32) {
        let Some(memory) = &mut self.memory else { return };
        memory.clock = self.events.now();
        for _ in 0..count {
            let cost = memory.allocate(cpu, self.cpus[cpu].at, &self.setup.costs);
            self.cpus[cpu].charge(Category::Kernel, cost, self.window);
        }
    }

    /// The engine asks something of `cpu`: an inter-CPU interrupt, if that is another one.
    fn interrupt(&mut self, cpu: usize, what: Happening) {
        if cpu != self.current {
            self.spent += self.setup.costs.ipi_send;
            let at = self.now();
            self.tally.machinery.ipis += u64::from(self.is_counted(at));
            self.on(at + self.setup.costs.ipi_latency / PICOS, cpu, what);
        }
    }

    /// Runs up to `count` callbacks of one moment, all of them at its end.
    fn run(&mut self, owner: usize, queued: Queued, count: u64) {
        let costs = &self.setup.costs;
        let migration = if owner == self.current { 0 } else { costs.callback_transfer };
        self.spent_callbacks += (costs.callback + migration) * count;
        if let (Some(memory), false) = (&mut self.memory, queued.waited_for) {
            memory.clock = self.events.now();
            for _ in 0..count {
                let spent = self.spent + self.spent_callbacks;
                let now = self.cpus[self.current].time_after(spent);
                self.spent_callbacks += memory.free(self.current, owner, now, costs);
            }
        }
        self.waiting -= count;
        self.waiting_bytes -= count * u64::from(queued.bytes);
        let now = self.now();
        if self.is_counted(now) {
            self.tally.callbacks.invoked += count;
            let latency = now.saturating_sub(queued.at);
            self.tally.callback_latency.record_many(latency, count);
            self.tally.callbacks.migrated += if owner == self.current { 0 } else { count };
        }
        if queued.waited_for {
            self.tasks_waiting = self.tasks_waiting.saturating_sub(count);
            self.spent_callbacks += self.setup.costs.wake_up;
            let sent = if owner == self.current { 0 } else { self.setup.costs.ipi_latency };
            self.on(self.now() + sent / PICOS, owner, Happening::Wake);
        }
    }
}

impl Host for World {
    fn raise(&mut self, cpu: usize) {
        if cpu < self.cpus.len() && !std::mem::replace(&mut self.cpus[cpu].softirq, true) {
            self.interrupt(cpu, Happening::Raise);
        }
    }

    fn resched(&mut self, cpu: usize) {
        if cpu < self.cpus.len() && !std::mem::replace(&mut self.cpus[cpu].need_resched, true) {
            self.interrupt(cpu, Happening::Reschedule);
        }
    }

    fn invoke(&mut self, owner: usize, count: u64) {
        if owner >= self.cpus.len() || count == 0 {
            return;
        }
        let mut left = count;
        let mut newest = 0;
        while left != 0 {
            let Some(front) = self.queues[owner].front_mut() else {
                self.tally.callbacks.invoked_beyond_queue += left;
                return;
            };
            let taken = front.count.min(left);
            front.count -= taken;
            left -= taken;
            let queued = *front;
            newest = newest.max(queued.step);
            if queued.count == 0 {
                self.queues[owner].pop_front();
            }
            self.run(owner, queued, taken);
        }
        if !self.all_quiescent_since(newest) {
            self.tally.callbacks.early_batches += 1;
        }
        let now = self.now();
        if self.is_counted(now) {
            self.tally.batches.record(count);
        }
    }

    fn timer(&mut self, jiffies: u32) {
        // A timer wheel's bucket is later than the time that was asked for by the rest of this
        // jiffy.
        let jiffy = self.setup.jiffy();
        let at = (self.now() / jiffy + u64::from(jiffies.max(1)) + 1) * jiffy;
        self.timer_ticket = self.timer_ticket.wrapping_add(1);
        self.events.at(at, Event::TimerExpires { ticket: self.timer_ticket });
    }

    fn touch(&mut self, line: Line, access: Access) {
        let now = self.now();
        self.spent += self.directory.touch(self.current, now, line, access, &self.setup.costs);
    }

    fn is_over_budget(&self) -> bool {
        // Filled as of now without being changed: the answer is asked for in the middle of a call.
        let filled = self.filled(self.now());
        filled < i128::from(self.spent)
    }

    fn began(&mut self, of: usize) {
        let now = self.now();
        self.tally.began(of, now);
        if self.is_counted(now) {
            self.timeline.began(of, now, &self.cpus);
        }
    }

    fn ended(&mut self, of: usize) {
        let now = self.now();
        let counted = self.is_counted(now);
        self.tally.ended(of, now, counted);
        self.timeline.ended(of, now, &self.cpus);
    }
}

impl World {
    /// What the budget gives in so much time.
    fn share(&self, span: Time) -> i128 {
        let share = i128::from(self.setup.budget_ppm) * self.cpus.len() as i128;
        i128::from(span) * i128::from(PICOS) * share / 1_000_000
    }

    /// The budget's credit at this time.
    fn filled(&self, now: Time) -> i128 {
        let more = self.share(now.saturating_sub(self.budget.filled_at));
        (self.budget.credit + more).min(self.share(BUDGET_SPAN))
    }

    /// Fills the budget up to this time. What was used ahead is dropped as what was saved is:
    /// beyond the span.
    pub(crate) fn fill_budget(&mut self, now: Time) {
        let credit = self.filled(now).max(-self.share(BUDGET_SPAN));
        self.budget = BudgetCredit { credit, filled_at: now };
    }
}
