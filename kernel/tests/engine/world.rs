//! Virtual CPUs for the engines' tests: what may happen to them, and what must hold.
//!
//! A schedule is a list of bytes in pairs: a CPU and what it does. What cannot happen (a
//! switch within a section, say) is left out, so that every schedule means something. Safety is
//! checked at each callback: no section that had begun when it was queued may still be going on.
//! Progress is checked at the end: sections end, those awake switch and tick (if they have ticks),
//! or stay in the kernel, those asleep continue sleeping, and within a bounded number of rounds all
//! callbacks must have run, and the engine must have nothing left to do.

use std::collections::VecDeque;
use std::ops::Range;

use grace::Urgency;
use kernel::engine::{Access, Callback, Engine, Host, Line, Mode};

/// What is outside of the engine, and what it asked for.
#[derive(Debug)]
struct Outside {
    /// Steps so far: the order of things.
    now: u64,
    /// When the section of each CPU began.
    sections: Vec<Option<u64>>,
    /// When the callbacks of each CPU were queued, and how many they queue in turn.
    queued: Vec<VecDeque<(u64, u8)>>,
    /// Callbacks that were queued by callbacks: on which CPU, and how many more.
    to_queue: Vec<(usize, u8)>,
    raised: Vec<bool>,
    resched: Vec<bool>,
    timer: Option<u32>,
    is_over_budget: bool,
    in_progress: Vec<bool>,
    fault: Option<String>,
}

impl Outside {
    fn fault(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }

    fn is_cpu(&mut self, cpu: usize) -> bool {
        let is_one = cpu < self.sections.len();
        if !is_one {
            self.fault(format!("there is no CPU {cpu}"));
        }
        is_one
    }
}

impl Host for Outside {
    fn raise(&mut self, cpu: usize) {
        if self.is_cpu(cpu) {
            self.raised[cpu] = true;
        }
    }

    fn resched(&mut self, cpu: usize) {
        if self.is_cpu(cpu) {
            self.resched[cpu] = true;
        }
    }

    fn invoke(&mut self, owner: usize, count: u64) {
        if !self.is_cpu(owner) {
            return;
        }
        for _ in 0..count {
            let Some((queued_at, more)) = self.queued[owner].pop_front() else {
                return self.fault(format!("a callback of {owner} runs that was not queued"));
            };
            if let Some(reader) =
                self.sections.iter().position(|began| began.is_some_and(|began| began < queued_at))
            {
                self.fault(format!(
                    "a callback queued at {queued_at} on {owner} runs at {} in a section of \
                     {reader} that began before",
                    self.now
                ));
            }
            if more != 0 {
                self.to_queue.push((owner, more - 1));
            }
        }
    }

    fn timer(&mut self, jiffies: u32) {
        if jiffies == 0 {
            self.fault("a timer of no jiffies".into());
        }
        self.timer = Some(jiffies);
    }

    fn timer_off(&mut self) {
        self.timer = None;
    }

    fn touch(&mut self, line: Line, _: Access) {
        if let Line::Cpu(cpu) | Line::Mailbox(cpu) = line {
            self.is_cpu(cpu);
        }
    }

    fn is_over_budget(&self) -> bool {
        self.is_over_budget
    }

    fn began(&mut self, of: usize) {
        if core::mem::replace(&mut self.in_progress[of], true) {
            self.fault(format!("a grace period of {of} begins within another"));
        }
    }

    fn ended(&mut self, of: usize) {
        if !core::mem::replace(&mut self.in_progress[of], false) {
            self.fault(format!("a grace period of {of} ends that had not begun"));
        }
    }
}

/// An engine and its CPUs.
#[derive(Debug)]
struct World<E> {
    engine: E,
    outside: Outside,
    eqs: Vec<bool>,
    /// CPUs without ticks.
    tickless: Range<usize>,
}

impl<E: Engine> World<E> {
    fn new(engine: E, cpus: usize, tickless: Range<usize>) -> Self {
        let outside = Outside {
            now: 0,
            sections: vec![None; cpus],
            queued: vec![VecDeque::new(); cpus],
            to_queue: Vec::new(),
            raised: vec![false; cpus],
            resched: vec![false; cpus],
            timer: None,
            is_over_budget: false,
            in_progress: vec![false; cpus.max(1)],
            fault: None,
        };
        Self { engine, outside, eqs: vec![false; cpus], tickless }
    }

    fn cpus(&self) -> usize {
        self.eqs.len()
    }

    fn is_awake(&self, cpu: usize) -> bool {
        !self.eqs[cpu]
    }

    /// Awake, and in no section.
    fn is_free(&self, cpu: usize) -> bool {
        self.is_awake(cpu) && self.outside.sections[cpu].is_none()
    }

    fn queue(&mut self, cpu: usize, urgency: Urgency, more: u8) {
        self.outside.queued[cpu].push_back((self.outside.now, more));
        let callback = Callback { urgency, bytes: 100 };
        self.engine.queue(cpu, callback, &mut self.outside);
    }

    fn softirq(&mut self, cpu: usize) {
        if core::mem::take(&mut self.outside.raised[cpu]) {
            self.engine.softirq(cpu, &mut self.outside);
        }
    }

    /// The CPU does what it was asked for: it wakes for that, and sleeps again.
    fn reschedule(&mut self, cpu: usize) {
        if self.outside.sections[cpu].is_some() || !self.outside.resched[cpu] {
            return;
        }
        self.outside.resched[cpu] = false;
        let slept = self.eqs[cpu];
        if slept {
            self.engine.exit_eqs(cpu, &mut self.outside);
        }
        self.engine.context_switch(cpu, &mut self.outside);
        if slept {
            self.engine.enter_eqs(cpu, &mut self.outside);
        }
    }

    fn tick(&mut self, cpu: usize, mode: Mode) {
        let is_possible = self.is_free(cpu) || mode == Mode::Kernel && self.is_awake(cpu);
        if is_possible && !self.tickless.contains(&cpu) {
            self.engine.tick(cpu, mode, &mut self.outside);
        }
    }

    fn timer(&mut self, cpu: usize) {
        if self.outside.sections[cpu].is_none() && self.outside.timer.take().is_some() {
            self.engine.timer(cpu, &mut self.outside);
        }
    }

    fn wake(&mut self, cpu: usize) {
        if core::mem::take(&mut self.eqs[cpu]) {
            self.engine.exit_eqs(cpu, &mut self.outside);
        }
    }

    fn sleep(&mut self, cpu: usize) {
        if self.is_free(cpu) {
            self.eqs[cpu] = true;
            self.engine.enter_eqs(cpu, &mut self.outside);
        }
    }

    fn step(&mut self, cpu: usize, what: u8) {
        self.outside.now += 1;
        let now = self.outside.now;
        match what % 24 {
            0..=3 if self.is_free(cpu) => self.outside.sections[cpu] = Some(now),
            4..=6 => self.outside.sections[cpu] = None,
            7..=8 if self.is_free(cpu) => {
                self.engine.context_switch(cpu, &mut self.outside);
            }
            9 => self.tick(cpu, Mode::User),
            10 => self.tick(cpu, Mode::Kernel),
            11 => self.tick(cpu, Mode::Idle),
            12 => self.sleep(cpu),
            13 => self.wake(cpu),
            14 => self.queue(cpu, Urgency::Background, what / 24 % 3),
            15 if what >= 128 => self.queue(cpu, Urgency::Normal, 0),
            15 => self.queue(cpu, Urgency::Expedited, 0),
            16..=18 => self.softirq(cpu),
            19..=20 => self.reschedule(cpu),
            21..=22 => self.timer(cpu),
            23 if what >= 128 => self.outside.is_over_budget = !self.outside.is_over_budget,
            23 if self.is_free(cpu) => self.engine.cond_resched(cpu, &mut self.outside),
            _ => {}
        }
        self.settle();
    }

    /// What callbacks queue is queued where they were; and counts agree.
    fn settle(&mut self) {
        for (cpu, more) in core::mem::take(&mut self.outside.to_queue) {
            self.outside.now += 1;
            self.queue(cpu, Urgency::Background, more);
        }
        for cpu in 0..self.cpus() {
            let (engine, queued) = (self.engine.waiting(cpu), self.outside.queued[cpu].len());
            if engine != queued as u64 {
                let what = format!("{engine} callbacks of {cpu} wait, of {queued}");
                self.outside.fault(what);
            }
        }
    }

    fn steps(&mut self, schedule: &[(u8, u8)]) -> Result<(), String> {
        for &(cpu, what) in schedule {
            self.step(usize::from(cpu) % self.cpus(), what);
            self.result()?;
        }
        Ok(())
    }

    /// A jiffy in which CPUs stay as they are: those in the kernel do what they were asked for,
    /// those asleep do not even hear it.
    fn staying(&mut self, round: usize) {
        for cpu in 0..self.cpus() {
            self.outside.now += 1;
            self.outside.sections[cpu] = None;
            if self.is_awake(cpu) {
                self.engine.cond_resched(cpu, &mut self.outside);
                self.reschedule(cpu);
            } else {
                self.outside.resched[cpu] = false;
            }
            self.tick(cpu, Mode::Kernel);
            self.softirq(cpu);
            self.settle();
        }
        self.timer(round % self.cpus());
    }

    /// A jiffy in which all CPUs that are awake pass through everything.
    fn round(&mut self, round: usize) {
        let mode = if round.is_multiple_of(2) { Mode::User } else { Mode::Idle };
        // Not as many quiescent states in each: narrow counters might come round from look to look.
        let switches = if round.is_multiple_of(3) { 2 } else { 1 };
        for cpu in 0..self.cpus() {
            self.outside.now += 1;
            self.outside.sections[cpu] = None;
            self.softirq(cpu);
            self.settle();
            self.reschedule(cpu);
            for _ in 0..if self.is_awake(cpu) { switches } else { 0 } {
                self.engine.context_switch(cpu, &mut self.outside);
            }
            self.tick(cpu, mode);
            self.settle();
        }
        self.outside.timer = self.outside.timer.map(|jiffies| jiffies - 1);
        if self.outside.timer == Some(0) {
            self.timer(0);
            self.settle();
        }
    }

    /// Whether no callback waits, and no grace period is in progress.
    fn is_done(&self) -> bool {
        let Outside { queued, in_progress, .. } = &self.outside;
        queued.iter().all(VecDeque::is_empty) && !in_progress.contains(&true)
    }

    /// Whether, besides, the engine wants nothing.
    fn is_quiet(&self) -> bool {
        let Outside { raised, resched, timer, .. } = &self.outside;
        self.is_done() && timer.is_none() && !raised.contains(&true) && !resched.contains(&true)
    }

    fn result(&self) -> Result<(), String> {
        self.outside.fault.clone().map_or(Ok(()), Err)
    }
}

/// Runs a schedule on so many CPUs, some of which have no ticks. What went wrong is the error.
pub(crate) fn run(
    engine: impl Engine,
    cpus: usize,
    tickless: Range<usize>,
    schedule: &[(u8, u8)],
) -> Result<(), String> {
    let mut world = World::new(engine, cpus, tickless);
    world.steps(schedule)?;
    // Each of the published ring's circuits takes as many rounds as it has CPUs; a callback
    // waits for three at most, and may queue two in turn. Others need less, and pause more.
    let queued: usize = world.outside.queued.iter().map(VecDeque::len).sum();
    for round in 0..100 + 20 * cpus + queued {
        world.round(round);
        world.result()?;
    }
    if world.is_quiet() { Ok(()) } else { Err(format!("there is work left: {world:?}")) }
}

/// The same, where in the end CPUs stay as they are.
pub(crate) fn run_staying(
    engine: impl Engine,
    cpus: usize,
    tickless: Range<usize>,
    schedule: &[(u8, u8)],
) -> Result<(), String> {
    let mut world = World::new(engine, cpus, tickless);
    world.steps(schedule)?;
    for round in 0..600 {
        if world.is_done() {
            return Ok(());
        }
        world.staying(round);
        world.result()?;
    }
    Err(format!("callbacks or grace periods do not come to an end: {world:?}"))
}
