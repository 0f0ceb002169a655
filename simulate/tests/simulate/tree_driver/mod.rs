//! CPUs with sections, at random, around an engine: what [`Host`] asks for happens sooner or
//! later, and every callback that runs is checked against the sections of when it was queued.
//!
//! The schedules of `tests/kernel` run the tree, too. Here are besides CPUs without ticks,
//! whose softirqs only the engine raises; and in the end CPUs stay in the kernel, so
//! that only what a variant does about holdouts ends a grace period.

use std::collections::VecDeque;
use std::ops::Range;

use grace::Urgency;
use simulate::kernel::{Access, Callback, Engine, Host, Line, Mode};

/// A section: the CPU, and which of its sections.
type Section = (usize, u64);

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// The section that is open, if any.
    open: Option<u64>,
    sections: u64,
    is_extended: bool,
    has_ticks: bool,
    is_raised: bool,
    is_to_resched: bool,
    /// For each callback that was queued here the sections that were open then.
    callbacks: VecDeque<Vec<Section>>,
}

/// What the engine sees of the world.
#[derive(Debug, Default)]
struct World {
    cpus: Vec<Cpu>,
    timer: Option<u32>,
    began: u64,
    ended: u64,
    violation: Option<String>,
}

impl Host for World {
    fn raise(&mut self, cpu: usize) {
        self.cpus[cpu].is_raised = true;
    }

    fn resched(&mut self, cpu: usize) {
        self.cpus[cpu].is_to_resched = true;
    }

    fn invoke(&mut self, owner: usize, count: u64) {
        for _ in 0..count {
            let Some(sections) = self.cpus[owner].callbacks.pop_front() else {
                self.violation = Some(format!("CPU {owner} has no callback to run"));
                return;
            };
            for (cpu, section) in sections {
                if self.cpus[cpu].open == Some(section) {
                    self.violation =
                        Some(format!("a callback of {owner} ran under a section on {cpu}"));
                }
            }
        }
    }

    fn timer(&mut self, jiffies: u32) {
        assert!(jiffies > 0);
        self.timer = Some(jiffies);
    }

    fn timer_off(&mut self) {
        self.timer = None;
    }

    fn touch(&mut self, line: Line, _: Access) {
        if let Line::Cpu(cpu) | Line::Mailbox(cpu) = line {
            assert!(cpu < self.cpus.len());
        }
    }

    fn is_over_budget(&self) -> bool {
        false
    }

    fn began(&mut self, _: usize) {
        self.began += 1;
    }

    fn ended(&mut self, _: usize) {
        self.ended += 1;
    }
}

/// An engine and its world.
#[derive(Debug)]
pub(crate) struct Driver<E> {
    engine: E,
    world: World,
}

impl<E: Engine> Driver<E> {
    /// Around `engine`, which has `cpus` CPUs; the `tickless` ones have no ticks.
    pub(crate) fn new(engine: E, cpus: usize, tickless: Range<usize>) -> Self {
        let cpu = |cpu| Cpu { has_ticks: !tickless.contains(&cpu), ..Cpu::default() };
        Self { engine, world: World { cpus: (0..cpus).map(cpu).collect(), ..World::default() } }
    }

    /// What went wrong, if anything did.
    pub(crate) fn violation(&self) -> Option<&str> {
        self.world.violation.as_deref()
    }

    /// The engine, to be shown.
    pub(crate) const fn engine(&self) -> &E {
        &self.engine
    }

    /// Grace periods that have begun.
    pub(crate) const fn began(&self) -> u64 {
        self.world.began
    }

    /// Grace periods that have ended.
    pub(crate) const fn ended(&self) -> u64 {
        self.world.ended
    }

    /// Something happens somewhere, as far as it can.
    pub(crate) fn step(&mut self, event: u16) {
        let cpu = usize::from(event >> 4) % self.world.cpus.len();
        let (engine, world) = (&mut self.engine, &mut self.world);
        let Cpu { open, is_extended, has_ticks, is_raised, is_to_resched, .. } = world.cpus[cpu];
        let is_free = open.is_none() && !is_extended;
        match event & 15 {
            0 | 1 if is_free => {
                world.cpus[cpu].sections += 1;
                world.cpus[cpu].open = Some(world.cpus[cpu].sections);
            }
            2 => world.cpus[cpu].open = None,
            3 if is_free => engine.context_switch(cpu, world),
            4 if is_to_resched => self.reschedule(cpu),
            5 | 6 if has_ticks && open.is_some() => engine.tick(cpu, Mode::Kernel, world),
            5 if has_ticks && !is_extended => engine.tick(cpu, Mode::User, world),
            6 if has_ticks => engine.tick(cpu, Mode::Idle, world),
            7 if is_free => engine.cond_resched(cpu, world),
            8 | 9 if is_raised => self.softirq(cpu),
            10 | 11 if !is_extended => {
                let open = world.cpus.iter().enumerate();
                let open = open.filter_map(|(cpu, own)| own.open.map(|section| (cpu, section)));
                let open = open.collect();
                world.cpus[cpu].callbacks.push_back(open);
                engine.queue(cpu, Callback { urgency: Urgency::Background, bytes: 64 }, world);
            }
            12 if is_free => {
                world.cpus[cpu].is_extended = true;
                engine.enter_eqs(cpu, world);
            }
            13 if is_extended => {
                world.cpus[cpu].is_extended = false;
                engine.exit_eqs(cpu, world);
            }
            14 => self.timer(cpu),
            _ => {}
        }
        self.check_counts();
    }

    fn softirq(&mut self, cpu: usize) {
        if std::mem::take(&mut self.world.cpus[cpu].is_raised) {
            self.engine.softirq(cpu, &mut self.world);
        }
    }

    fn reschedule(&mut self, cpu: usize) {
        let own = &mut self.world.cpus[cpu];
        if own.open.is_none() && std::mem::take(&mut own.is_to_resched) && !own.is_extended {
            self.engine.context_switch(cpu, &mut self.world);
        }
    }

    fn timer(&mut self, cpu: usize) {
        if self.world.cpus[cpu].open.is_none() && self.world.timer.take().is_some() {
            self.engine.timer(cpu, &mut self.world);
        }
    }

    fn check_counts(&mut self) {
        for (cpu, own) in self.world.cpus.iter().enumerate() {
            if self.engine.waiting(cpu) != own.callbacks.len() as u64 {
                self.world.violation = Some(format!("callbacks of {cpu} are miscounted"));
            }
        }
    }

    /// No new sections nor callbacks; CPUs stay as they are, idle or in the kernel. What has
    /// been asked for happens. Returns how many rounds it took until no callback waited and no
    /// grace period was in progress.
    pub(crate) fn drain(&mut self, rounds_max: usize) -> Option<usize> {
        let cpus = self.world.cpus.len();
        for round in 0..rounds_max {
            if (0..cpus).all(|cpu| self.engine.waiting(cpu) == 0)
                && self.world.began == self.world.ended
            {
                return Some(round);
            }
            for cpu in 0..cpus {
                self.world.cpus[cpu].open = None;
                let Cpu { is_extended, has_ticks, .. } = self.world.cpus[cpu];
                if !is_extended {
                    self.engine.cond_resched(cpu, &mut self.world);
                }
                self.reschedule(cpu);
                if has_ticks && !is_extended {
                    self.engine.tick(cpu, Mode::Kernel, &mut self.world);
                }
                self.softirq(cpu);
            }
            self.timer(round % cpus);
        }
        None
    }
}
