//! CPUs around an engine: what they may do, what the engine asked of them, and what must
//! hold.
//!
//! A CPU is in a section or not, awake or in an extended quiescent state; softirqs, passes
//! through the scheduler and the timer that the engine asked for happen at some time, or never as
//! long as a section is in the way. For each callback that waits, the CPUs whose section was
//! open when it was queued and is so still are written down: when it runs there must be none. The
//! same for each grace period.
//!
//! The calls into the engine are atomic here, as they are under its locks. Where an engine reads
//! other CPUs' lines without a lock it reads values that move one way only (counters, numbers
//! that are shown) and that their owner writes at quiescent states; one look at all of them is
//! taken as one moment.

use core::cell::RefCell;
use core::hash::Hash;
use std::collections::VecDeque;

use grace::Urgency;
use kernel::engine::{Callback, Engine, Host, Mode};
use serde::Deserialize;

use crate::choice::Choice;
use crate::system::{By, Outcome, System};

/// CPUs, and what they may do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "&str", bound(deserialize = "'de: 'static"))]
pub struct Cpus {
    /// How many callbacks each of them queues, at most. Eight CPUs at most.
    pub callbacks: Vec<u8>,
    /// How much somebody may want them.
    pub urgencies: &'static [Urgency],
    /// CPUs may enter extended quiescent states.
    pub may_sleep: bool,
    /// The CPUs without ticks, as a set of bits: none, or the last.
    pub tickless: u8,
}

impl From<&str> for Cpus {
    /// As `worlds/engines.toml` has them.
    fn from(text: &str) -> Self {
        let mut words = text.split(", ");
        let callbacks = words.next().unwrap_or_default().split(' ');
        let callbacks = callbacks.map(|count| count.parse().expect("how many callbacks"));
        let (urgencies, callbacks) = (&[Urgency::Background][..], callbacks.collect());
        let mut cpus = Self { callbacks, urgencies, may_sleep: true, tickless: 0 };
        for word in words {
            match word {
                "awake" => cpus.may_sleep = false,
                "urgent" => cpus.urgencies = &[Urgency::Background, Urgency::Expedited],
                "last tickless" => cpus.tickless = 1 << (cpus.callbacks.len() - 1),
                _ => panic!("CPUs are not {word}"),
            }
        }
        cpus
    }
}

/// A set of CPUs.
type CpuSet = u8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Cpu {
    is_reading: bool,
    is_asleep: bool,
    is_raised: bool,
    is_to_resched: bool,
    /// Callbacks that it may still queue.
    left: u8,
    /// For each callback that waits, the oldest first, whose sections it waits for.
    queued: VecDeque<CpuSet>,
}

/// What is outside of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Outside {
    cpus: Vec<Cpu>,
    has_timer: bool,
    /// For each grace period in progress whose sections it waits for.
    pub(crate) grace_periods: Vec<Option<CpuSet>>,
}

impl Outside {
    fn readers(&self) -> CpuSet {
        let readers = self.cpus.iter().enumerate().filter(|(_, cpu)| cpu.is_reading);
        readers.fold(0, |set, (index, _)| set | 1 << index)
    }

    fn section_ends(&mut self, cpu: usize) {
        self.cpus[cpu].is_reading = false;
        let queued = self.cpus.iter_mut().flat_map(|cpu| &mut cpu.queued);
        let began = self.grace_periods.iter_mut().flatten();
        queued.chain(began).for_each(|readers| *readers &= !(1 << cpu));
    }
}

/// The engine's host while it is called.
struct Called<'a> {
    outside: &'a mut Outside,
    choice: RefCell<&'a mut Choice>,
    told: Option<&'a mut String>,
    fault: Option<String>,
}

impl Called<'_> {
    fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            told.push_str("; ");
            told.push_str(&what());
        }
    }

    fn fault(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }
}

impl Host for Called<'_> {
    fn raise(&mut self, cpu: usize) {
        self.outside.cpus[cpu].is_raised = true;
        self.tell(|| format!("raises {cpu}"));
    }

    fn resched(&mut self, cpu: usize) {
        self.outside.cpus[cpu].is_to_resched = true;
        self.tell(|| format!("reschedules {cpu}"));
    }

    fn invoke(&mut self, owner: usize, count: u64) {
        self.tell(|| format!("runs {count} of {owner}"));
        for _ in 0..count {
            let Some(readers) = self.outside.cpus[owner].queued.pop_front() else {
                return self.fault(format!("a callback of {owner} is run that was not queued"));
            };
            if readers != 0 {
                let reader = readers.trailing_zeros();
                self.fault(format!("a callback of {owner} is run under a section of {reader}"));
            }
        }
    }

    fn timer(&mut self, jiffies: u32) {
        if jiffies == 0 {
            self.fault("a timer of no jiffies".into());
        }
        self.outside.has_timer = true;
        self.tell(|| format!("asks for the timer in {jiffies}"));
    }

    /// It may come all the same.
    fn timer_off(&mut self) {
        self.outside.has_timer &= self.choice.borrow_mut().choose(2) == 1;
        self.tell(|| "needs the timer no more".into());
    }

    fn is_over_budget(&self) -> bool {
        self.choice.borrow_mut().choose(2) == 1
    }

    fn began(&mut self, of: usize) {
        let readers = self.outside.readers();
        if self.outside.grace_periods[of].replace(readers).is_some() {
            self.fault(format!("a grace period of {of} begins in another"));
        }
        self.tell(|| "a grace period begins".into());
    }

    fn ended(&mut self, of: usize) {
        match self.outside.grace_periods[of].take() {
            None => self.fault(format!("a grace period of {of} ends that had not begun")),
            Some(0) => {}
            Some(readers) => {
                let reader = readers.trailing_zeros();
                self.fault(format!("a grace period of {of} ends before a section of {reader}"));
            }
        }
        self.tell(|| "a grace period ends".into());
    }
}

/// A state of engine and CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EngineAndCpus<E> {
    pub(crate) engine: E,
    pub(crate) outside: Outside,
}

/// What a CPU may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Lock,
    Unlock,
    /// Passes through the scheduler, of its own will.
    Switch,
    /// Because it was asked to; if it sleeps it wakes for that, and sleeps again.
    Obey,
    Tick,
    Softirq,
    /// The engine's timer runs here.
    Timer,
    CondResched,
    Sleep,
    Wake,
    Queue,
}

pub(crate) const STEPS: [Step; 11] = [
    Step::Lock,
    Step::Unlock,
    Step::Switch,
    Step::Obey,
    Step::Tick,
    Step::Softirq,
    Step::Timer,
    Step::CondResched,
    Step::Sleep,
    Step::Wake,
    Step::Queue,
];

/// The CPU and its step that have this number.
fn numbered(step: u16) -> (usize, Step) {
    (usize::from(step) / STEPS.len(), STEPS[usize::from(step) % STEPS.len()])
}

/// An engine and its CPUs, as a system to explore.
#[derive(Debug)]
pub(crate) struct Around<'a, E> {
    pub(crate) engine: E,
    pub(crate) cpus: &'a Cpus,
}

impl<E: Engine + Clone + Hash> Around<'_, E> {
    fn is_possible(&self, outside: &Outside, cpu: usize, step: Step) -> bool {
        let own = &outside.cpus[cpu];
        let is_free = !own.is_reading && !own.is_asleep;
        match step {
            Step::Lock | Step::Switch | Step::CondResched => is_free,
            Step::Unlock => own.is_reading,
            Step::Obey => own.is_to_resched && !own.is_reading,
            Step::Tick => !own.is_asleep && self.cpus.tickless & 1 << cpu == 0,
            Step::Softirq => own.is_raised,
            Step::Timer => outside.has_timer && !own.is_reading,
            Step::Sleep => is_free && self.cpus.may_sleep,
            Step::Wake => own.is_asleep,
            Step::Queue => own.left != 0,
        }
    }

    fn perform(&self, engine: &mut E, cpu: usize, step: Step, called: &mut Called<'_>) {
        match step {
            Step::Lock => called.outside.cpus[cpu].is_reading = true,
            Step::Unlock => called.outside.section_ends(cpu),
            Step::Switch => engine.context_switch(cpu, called),
            Step::Obey => {
                called.outside.cpus[cpu].is_to_resched = false;
                let is_asleep = called.outside.cpus[cpu].is_asleep;
                if is_asleep {
                    engine.exit_eqs(cpu, called);
                }
                engine.context_switch(cpu, called);
                if is_asleep {
                    engine.enter_eqs(cpu, called);
                }
            }
            Step::Tick => {
                let mode = match called.outside.cpus[cpu].is_reading {
                    true => Mode::Kernel,
                    false => {
                        let modes = [Mode::Kernel, Mode::User, Mode::Idle];
                        modes[called.choice.borrow_mut().choose(modes.len())]
                    }
                };
                called.tell(|| format!("{mode:?}"));
                engine.tick(cpu, mode, called);
            }
            Step::Softirq => {
                called.outside.cpus[cpu].is_raised = false;
                engine.softirq(cpu, called);
            }
            Step::Timer => {
                called.outside.has_timer = false;
                engine.timer(cpu, called);
            }
            Step::CondResched => engine.cond_resched(cpu, called),
            Step::Sleep => {
                called.outside.cpus[cpu].is_asleep = true;
                engine.enter_eqs(cpu, called);
            }
            Step::Wake => {
                called.outside.cpus[cpu].is_asleep = false;
                engine.exit_eqs(cpu, called);
            }
            Step::Queue => self.queue(engine, cpu, called),
        }
    }

    fn queue(&self, engine: &mut E, cpu: usize, called: &mut Called<'_>) {
        let urgencies = self.cpus.urgencies;
        let urgency = urgencies[called.choice.borrow_mut().choose(urgencies.len())];
        let readers = called.outside.readers();
        called.outside.cpus[cpu].left -= 1;
        called.outside.cpus[cpu].queued.push_back(readers);
        called.tell(|| format!("{urgency:?}"));
        engine.queue(cpu, Callback { urgency, bytes: 1 }, called);
    }

    /// What is wrong with a state, whatever led there.
    fn mismatch(&self, state: &EngineAndCpus<E>) -> Option<String> {
        let count = |cpu: usize| state.outside.cpus[cpu].queued.len() as u64;
        (0..state.outside.cpus.len()).find(|cpu| state.engine.waiting(*cpu) != count(*cpu)).map(
            |cpu| {
                let counted = state.engine.waiting(cpu);
                format!("{counted} callbacks of {cpu} are counted, of {}", count(cpu))
            },
        )
    }
}

impl<E: Engine + Clone + Hash> System for Around<'_, E> {
    type State = EngineAndCpus<E>;

    fn first(&self) -> EngineAndCpus<E> {
        let cpu = |left: &u8| Cpu { left: *left, ..Cpu::default() };
        let cpus: Vec<Cpu> = self.cpus.callbacks.iter().map(cpu).collect();
        let grace_periods = vec![None; cpus.len()];
        let outside = Outside { cpus, has_timer: false, grace_periods };
        EngineAndCpus { engine: self.engine.clone(), outside }
    }

    fn steps(&self) -> u16 {
        (self.cpus.callbacks.len() * STEPS.len()) as u16
    }

    fn can(&self, state: &EngineAndCpus<E>, step: u16) -> bool {
        let (cpu, step) = numbered(step);
        self.is_possible(&state.outside, cpu, step)
    }

    fn take(&self, state: &mut EngineAndCpus<E>, step: u16, by: By<'_>) -> Outcome {
        let (cpu, step) = numbered(step);
        let By { choice, mut told } = by;
        if let Some(told) = &mut told {
            told.push_str(&format!("{cpu}: {step:?}"));
        }
        let outside = &mut state.outside;
        let mut called = Called { outside, choice: RefCell::new(choice), told, fault: None };
        self.perform(&mut state.engine, cpu, step, &mut called);
        match called.fault.take().or_else(|| self.mismatch(state)) {
            Some(fault) => Outcome::Violation(fault),
            None => Outcome::Moved,
        }
    }

    /// All callbacks have run, and the engine wants nothing.
    fn is_end(&self, state: &EngineAndCpus<E>) -> bool {
        let is_quiet = |cpu: &Cpu| !cpu.is_raised && !cpu.is_to_resched && cpu.queued.is_empty();
        !state.outside.has_timer && state.outside.cpus.iter().all(is_quiet)
    }

    /// Sections end, and CPUs do what they are asked to; those awake tick, and pass through
    /// their schedulers; those asleep sleep on.
    fn is_due(&self, step: u16) -> bool {
        use Step::{
            CondResched, Lock, Obey, Queue, Sleep, Softirq, Switch, Tick, Timer, Unlock, Wake,
        };
        match numbered(step).1 {
            Unlock | Switch | Obey | Tick | Softirq | Timer => true,
            Lock | CondResched | Sleep | Wake | Queue => false,
        }
    }
}
