//! The event loop: takes the next event, applies it to a CPU, and tells the engine.
//!
//! This file has what a CPU does by itself: ticks, stretches of tasks, passes through the
//! scheduler, idling. `softirq` has what it does for the engine: softirqs, ksoftirqd, the engine's
//! thread.

use std::ops::ControlFlow;

use grace::Urgency;
use kernel::engine::{Callback, Engine, Mode};

use crate::cost::Picos;
use crate::cpu::{Activity, Blocked, Stretch, Then};
use crate::events::Time;
use crate::memory::Memory;
use crate::program::Program;
use crate::setup::Setup;
use crate::ticks::Ticks;
use crate::timeline::Look;
use crate::world::{Event, Happening, World};

/// Why a CPU passes through its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// The engine wants it to; it continues with what it did.
    Forced,
    /// Another task runs from now on.
    Switch,
    /// The same, and the time has been charged already.
    Charged,
}

/// An engine and the machine around it.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) world: World,
    pub(crate) engine: Box<dyn Engine>,
    programs: Vec<Program>,
    pub(crate) ticks: Ticks,
    /// The time of the event that is being handled.
    pub(crate) now: Time,
    /// Where the engine's thread ran last.
    pub(crate) thread_cpu: usize,
    /// Tasks that have come to the barrier.
    arrived: usize,
    /// When the last round ended.
    round_at: Time,
}

/// How much of a jiffy lies between two samples, in thousandths. Not a simple fraction: the samples
/// must not always fall on the same place between two ticks.
const SAMPLE_PARTS: Time = 618;

impl Driver {
    pub(crate) fn new(
        setup: &Setup,
        engine: Box<dyn Engine>,
        programs: Vec<Program>,
        memory: Option<Memory>,
    ) -> Self {
        Self {
            world: World::new(setup, memory),
            engine,
            programs,
            ticks: Ticks::new(setup.jiffy(), setup.cpus),
            now: 0,
            thread_cpu: 0,
            arrived: 0,
            round_at: 0,
        }
    }

    /// Runs to the end, or until `progress`, which gets the time now and then, breaks off.
    pub(crate) fn run(
        &mut self,
        progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let end = self.world.window.to;
        for cpu in 0..self.world.cpus.len() {
            self.ticks.set(cpu, true, 0);
            let stretch = self.next_stretch(cpu);
            self.begin(cpu, stretch);
            self.settle(cpu);
            self.schedule_background(cpu);
        }
        self.world.events.at(0, Event::Sample);
        loop {
            let tick = self.ticks.next;
            let until = tick.map_or(end, |(at, _)| at.min(end));
            if let Some(event) = self.world.events.next(until) {
                self.pass_time(self.world.events.now());
                self.world.tally.machinery.events += 1;
                if event == Event::Sample {
                    progress(self.now)?;
                }
                self.handle(event);
            } else if let Some((at, cpu)) = tick.filter(|&(at, _)| at < end) {
                self.pass_time(at);
                self.ticks.advance();
                self.tick(cpu);
            } else {
                break;
            }
        }
        self.pass_time(end);
        let longest = &mut self.world.tally.worker_awake_max;
        for cpu in &mut self.world.cpus {
            cpu.run_until(end, self.world.window);
            if let Some(since) = cpu.worker_since {
                // A CPU that never came to rest must not look as if it had never been awake.
                let since = since.max(self.world.window.from);
                *longest = (*longest).max(end.saturating_sub(since));
            }
        }
        ControlFlow::Continue(())
    }

    fn pass_time(&mut self, now: Time) {
        let from = self.world.window.from;
        if self.now < from && now >= from {
            self.world.begin_counting();
        }
        self.now = now;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Sample => self.sample(),
            Event::TimerExpires { ticket } => self.timer_expires(ticket),
            Event::StretchEnds { cpu, ticket } => self.stretch_ends(cpu as usize, ticket),
            Event::IdleLook { cpu, ticket } => self.idle_look(cpu as usize, ticket),
            Event::Background { cpu } => self.background(cpu as usize),
            Event::On { cpu, what } => {
                let (cpu, at) = (cpu as usize, self.world.cpus[cpu as usize].at);
                if at > self.now {
                    // It has interrupts off, or works on another one.
                    self.world.events.at(at, event);
                } else {
                    self.arrive(cpu);
                    self.happens(cpu, what);
                    self.settle(cpu);
                }
            }
        }
    }

    fn happens(&mut self, cpu: usize, what: Happening) {
        match what {
            Happening::Reschedule => {
                self.world.charge_engine(cpu, self.world.setup.costs.interrupt);
            }
            Happening::Raise => {
                self.world.charge_engine(cpu, self.world.setup.costs.interrupt);
                self.softirq_of_interrupt(cpu);
            }
            Happening::Preemptible => self.preemptible(cpu),
            Happening::Softirq { ticket } => self.softirq(cpu, ticket),
            Happening::Thread { ticket } => self.thread(cpu, ticket),
            Happening::Wake => self.wake(cpu),
        }
    }

    /// Calls the engine on `cpu`, which costs `cost` and what the engine does. In its softirq and
    /// its thread it may find others quiescent than `cpu`.
    pub(crate) fn call(
        &mut self,
        cpu: usize,
        cost: Picos,
        look: Look,
        call: impl FnOnce(&mut dyn Engine, &mut World),
    ) {
        self.world.open(cpu, cost);
        call(&mut *self.engine, &mut self.world);
        self.world.close();
        let World { timeline, cpus, .. } = &mut self.world;
        if timeline.is_watching() {
            timeline.look(&*self.engine, (cpu, look), cpus[cpu].at, cpus);
        }
    }

    /// Something comes to `cpu` now: time has passed there, and it is in no extended quiescent
    /// state.
    pub(crate) fn arrive(&mut self, cpu: usize) {
        let window = self.world.window;
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.run_until(self.now, window);
        if core::mem::take(&mut this_cpu.in_eqs) {
            let at = this_cpu.at;
            self.world.is_quiescent(cpu, at);
            let cost = self.world.setup.costs.engine;
            self.call(cpu, cost, Look::Own, |engine, world| engine.exit_eqs(cpu, world));
        }
        self.offer_to_reschedule(cpu);
    }

    /// Tells the engine of the calls of `cond_resched()` since it was last notified; in a
    /// preemptible kernel they do nothing, unless they are `cond_resched_rcu_qs()`.
    fn offer_to_reschedule(&mut self, cpu: usize) {
        let due = core::mem::take(&mut self.world.cpus[cpu].cond_resched_due);
        let activity = self.world.cpus[cpu].stretch.activity;
        let does_something = !self.world.setup.preemptible
            || matches!(activity, Activity::Kernel { rcu_qs: true, .. });
        if due != 0 && does_something {
            let at = self.world.cpus[cpu].at;
            self.world.is_quiescent(cpu, at);
            self.call(cpu, 0, Look::Own, |engine, world| {
                (0..due).for_each(|_| engine.cond_resched(cpu, world));
            });
        }
    }

    /// What came to `cpu` has been dealt with: softirqs, the scheduler, an extended quiescent
    /// state.
    pub(crate) fn settle(&mut self, cpu: usize) {
        self.start_softirq(cpu);
        let preemptible = self.world.setup.preemptible;
        let this_cpu = &mut self.world.cpus[cpu];
        // Softirqs come first; but ksoftirqd, when it is the task's turn, does not.
        let softirq_first =
            this_cpu.softirq_event && (!this_cpu.daemon.awake || this_cpu.daemon.runs);
        if this_cpu.need_resched && !this_cpu.resched_event && !softirq_first {
            match this_cpu.until_preemptible(preemptible) {
                Some(0) => {
                    self.pass(cpu, Pass::Forced);
                    self.start_softirq(cpu);
                }
                Some(wait) => {
                    this_cpu.resched_event = true;
                    let at = this_cpu.at + wait;
                    self.world.on(at, cpu, Happening::Preemptible);
                }
                None => {}
            }
        }
        if self.world.setup.tickless {
            self.settle_tick(cpu);
        }
    }

    /// A CPU that is idle, or in user mode, gives up its tick; unless it has callbacks, as Linux
    /// has it.
    fn settle_tick(&mut self, cpu: usize) {
        let this_cpu = &self.world.cpus[cpu];
        if this_cpu.can_be_in_eqs() && self.engine.waiting(cpu) == 0 {
            if !this_cpu.in_eqs {
                let cost = self.world.setup.costs.engine;
                let at = this_cpu.at;
                self.world.cpus[cpu].in_eqs = true;
                self.world.is_quiescent(cpu, at);
                self.call(cpu, cost, Look::Own, |engine, world| engine.enter_eqs(cpu, world));
                self.start_softirq(cpu);
            }
            self.ticks.set(cpu, false, self.now);
        } else {
            let alone = matches!(this_cpu.stretch.activity, Activity::Kernel { alone: true, .. });
            self.ticks.set(cpu, !alone, self.now);
        }
    }

    fn tick(&mut self, cpu: usize) {
        let (now, window) = (self.now, self.world.window);
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.run_until(now, window);
        // Before anything is charged: a CPU that is ahead of the clock is in the kernel.
        let mode = this_cpu.mode(now);
        self.arrive(cpu);
        let counted = self.world.is_counted(now);
        self.world.tally.machinery.ticks += u64::from(counted);
        let costs = &self.world.setup.costs;
        let (cost, engine_cost) = (costs.interrupt + costs.tick, costs.engine);
        self.world.charge_kernel(cpu, cost);
        if mode != Mode::Kernel {
            self.world.is_quiescent(cpu, now);
        }
        self.call(cpu, engine_cost, Look::Own, |engine, world| engine.tick(cpu, mode, world));
        self.softirq_of_interrupt(cpu);
        self.settle(cpu);
    }

    /// `cpu` passes through its scheduler.
    pub(crate) fn pass(&mut self, cpu: usize, why: Pass) {
        let counted = self.world.is_counted(self.now);
        let costs = &self.world.setup.costs;
        let (schedule, switch) = (costs.schedule, costs.context_switch);
        let is_background = core::mem::take(&mut self.world.cpus[cpu].background);
        match why {
            Pass::Forced if is_background => self.world.charge_kernel(cpu, 2 * switch),
            Pass::Forced => {
                self.world.tally.machinery.forced_switches += u64::from(counted);
                self.world.charge_engine(cpu, schedule);
            }
            Pass::Switch => self.world.charge_kernel(cpu, switch),
            Pass::Charged => {}
        }
        self.world.tally.machinery.context_switches += u64::from(counted);
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.need_resched = false;
        let at = this_cpu.at;
        self.world.is_quiescent(cpu, at);
        self.call(cpu, 0, Look::Own, |engine, world| engine.context_switch(cpu, world));
    }

    /// A kernel thread wants to run on `cpu`. It wakes no idle CPU, and runs on none that was
    /// left to one program alone.
    fn background(&mut self, cpu: usize) {
        let this_cpu = &mut self.world.cpus[cpu];
        if !this_cpu.is_idle() && !this_cpu.in_eqs {
            this_cpu.background = true;
            this_cpu.need_resched = true;
            if this_cpu.at <= self.now {
                self.arrive(cpu);
                self.settle(cpu);
            }
        }
        self.schedule_background(cpu);
    }

    fn schedule_background(&mut self, cpu: usize) {
        let every = self.world.setup.background_every;
        if every != 0 {
            let after = 1 + self.world.cpus[cpu].random.exponential(every);
            self.world.events.at(self.now + after, Event::Background { cpu: cpu as u32 });
        }
    }

    fn preemptible(&mut self, cpu: usize) {
        self.world.cpus[cpu].resched_event = false;
        if self.world.cpus[cpu].need_resched {
            self.pass(cpu, Pass::Forced);
        }
    }

    fn stretch_ends(&mut self, cpu: usize, ticket: u32) {
        let window = self.world.window;
        let this_cpu = &mut self.world.cpus[cpu];
        if this_cpu.ticket != ticket {
            return;
        }
        this_cpu.run_until(self.now, window);
        let is_late = match this_cpu.is_idle() {
            true => this_cpu.at > self.now,
            false => this_cpu.left > 0 || this_cpu.at > self.now || this_cpu.daemon.runs,
        };
        if is_late {
            let left = if this_cpu.is_idle() { 0 } else { this_cpu.left };
            let at = (this_cpu.at + left).max(self.now + 1);
            return self.world.events.at(at, Event::StretchEnds { cpu: cpu as u32, ticket });
        }
        self.arrive(cpu);
        self.finish(cpu);
        self.settle(cpu);
    }

    /// Does what a stretch does at its end, and begins the next.
    fn finish(&mut self, cpu: usize) {
        let stretch = self.world.cpus[cpu].stretch;
        if self.world.is_counted(self.now) {
            self.world.tally.operations += u64::from(stretch.operations);
        }
        self.world.allocate(cpu, stretch.calls);
        self.queue(cpu, stretch.calls, stretch.bytes, Urgency::Background, false);
        let next = match stretch.then {
            Then::GoOn | Then::Switch => self.next_stretch(cpu),
            Then::Wait(urgency) => {
                self.queue(cpu, 1, stretch.bytes, urgency, true);
                self.block(cpu, Blocked::Callback(self.world.cpus[cpu].at))
            }
            Then::Barrier { ends_round } if self.comes_last(cpu, ends_round) => {
                self.next_stretch(cpu)
            }
            Then::Barrier { .. } => self.block(cpu, Blocked::Barrier),
        };
        let goes_idle = next.activity == Activity::Idle;
        if stretch.then == Then::Switch || goes_idle != (stretch.activity == Activity::Idle) {
            self.pass(cpu, Pass::Switch);
        } else if self.world.cpus[cpu].need_resched {
            self.pass(cpu, Pass::Forced);
        }
        self.begin(cpu, next);
    }

    fn next_stretch(&mut self, cpu: usize) -> Stretch {
        self.programs[cpu].next(&mut self.world.cpus[cpu].random)
    }

    fn begin(&mut self, cpu: usize, stretch: Stretch) {
        if stretch.activity == Activity::Idle {
            self.daemon_has_its_turn(cpu);
        }
        let this_cpu = &mut self.world.cpus[cpu];
        this_cpu.stretch = stretch;
        this_cpu.left = stretch.length;
        this_cpu.ticket = this_cpu.ticket.wrapping_add(1);
        if this_cpu.blocked.is_none() {
            let event = Event::StretchEnds { cpu: cpu as u32, ticket: this_cpu.ticket };
            self.world.events.at(this_cpu.at.saturating_add(stretch.length), event);
        }
        self.schedule_idle_look(cpu);
    }

    /// The idle loop of `cpu` looks whether callbacks wait, and passes through the scheduler if so.
    fn idle_look(&mut self, cpu: usize, ticket: u32) {
        let this_cpu = &self.world.cpus[cpu];
        if this_cpu.ticket != ticket {
            return;
        }
        if this_cpu.at <= self.now && !this_cpu.in_eqs && self.world.waiting != 0 {
            self.arrive(cpu);
            self.pass(cpu, Pass::Forced);
            self.settle(cpu);
        }
        self.schedule_idle_look(cpu);
    }

    fn schedule_idle_look(&mut self, cpu: usize) {
        let every = self.world.setup.idle_look_every;
        let this_cpu = &self.world.cpus[cpu];
        if every != 0 && this_cpu.is_idle() {
            let event = Event::IdleLook { cpu: cpu as u32, ticket: this_cpu.ticket };
            self.world.events.at(this_cpu.at.max(self.now) + every, event);
        }
    }

    /// The task of `cpu` waits, and the CPU has nothing to do.
    fn block(&mut self, cpu: usize, what: Blocked) -> Stretch {
        self.world.cpus[cpu].blocked = Some(what);
        Stretch::new(Activity::Idle, Time::MAX)
    }

    /// Queues callbacks on `cpu`.
    fn queue(&mut self, cpu: usize, count: u32, bytes: u32, urgency: Urgency, waited_for: bool) {
        if count == 0 {
            return;
        }
        self.world.enqueue(cpu, u64::from(count), bytes, waited_for);
        let cost = self.world.setup.costs.engine * u64::from(count);
        let callback = Callback { urgency, bytes };
        self.call(cpu, cost, Look::Own, |engine, world| {
            (0..count).for_each(|_| engine.queue(cpu, callback, world));
        });
    }

    /// The task of `cpu` comes to the barrier. Returns whether all others are there, and wakes
    /// them.
    fn comes_last(&mut self, cpu: usize, ends_round: bool) -> bool {
        self.arrived += 1;
        if self.arrived < self.world.cpus.len() {
            return false;
        }
        self.arrived = 0;
        let at = self.world.cpus[cpu].at;
        if ends_round {
            if self.world.is_counted(at) && self.round_at >= self.world.window.from {
                self.world.tally.iterations.record(at - self.round_at);
            }
            self.round_at = at;
        }
        let costs = self.world.setup.costs;
        for other in (0..self.world.cpus.len()).filter(|&other| other != cpu) {
            self.world.charge_kernel(cpu, costs.wake_up);
            let at = self.world.cpus[cpu].time_after(costs.ipi_latency);
            self.world.on(at, other, Happening::Wake);
        }
        true
    }

    /// What the task of `cpu` waited for has happened.
    fn wake(&mut self, cpu: usize) {
        let Some(blocked) = self.world.cpus[cpu].blocked.take() else { return };
        self.world.charge_kernel(cpu, self.world.setup.costs.interrupt);
        self.pass(cpu, Pass::Switch);
        let at = self.world.cpus[cpu].at;
        if let (Blocked::Callback(since), true) = (blocked, self.world.is_counted(at)) {
            self.world.tally.waiter_latency.record(at.saturating_sub(since));
        }
        let stretch = self.next_stretch(cpu);
        self.begin(cpu, stretch);
    }

    fn sample(&mut self) {
        if self.world.is_counted(self.now) {
            self.world.tally.waiting_sum += u128::from(self.world.waiting);
            self.world.tally.samples += 1;
        }
        self.world.fill_budget(self.now);
        let at = self.now + self.world.setup.jiffy() * SAMPLE_PARTS / 1_000;
        self.world.events.at(at, Event::Sample);
    }
}
