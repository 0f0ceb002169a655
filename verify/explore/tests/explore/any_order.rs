//! Engines under random schedules, beyond what is explored: on more CPUs, with floods, and with
//! limits and counters that are not the smallest. What must hold after each step is what must hold
//! where all are taken ([`check::engines`]); and every callback runs in the end.

use core::fmt::Debug;
use core::hash::Hash;

use grace::Sequence;
use grace::Urgency::{Background, Expedited, Normal};
use grace::steps::Intact;
use kernel::engine::on_demand::{self, OnDemand};
use kernel::engine::token::{Published, Relay, v2};
use kernel::engine::tree::{Options, Tree, Variant};
use kernel::engine::{Engine, Start, poll, tick};
use proptest::prelude::*;
use simulate::Heap;

use crate::choice::Choice;
use crate::cpus::Step::{CondResched, Obey, Softirq, Switch, Tick, Timer, Unlock, Wake};
use crate::cpus::{Around, Cpus, EngineAndCpus, STEPS, Step};
use crate::system::{By, Outcome, System};

const VARIANTS: [Variant; 5] = [
    Variant::V3_15,
    Variant::V0 { period: 2 },
    Variant::V1 { flag_after_jiffies: 2 },
    Variant::V2 { sched_qs_jiffies: 2 },
    Variant::Today,
];

/// Limits so small that a few dozen events get at all of them.
fn small(variant: Variant, qhimark: u64) -> Options {
    Options {
        leaf_fanout: 2,
        fanout: 2,
        first_fqs_jiffies: 1,
        next_fqs_jiffies: 1,
        sched_qs_jiffies: 2,
        stall_jiffies: 12,
        blimit: 2,
        ready_shift: 2,
        qhimark,
        qlowmark: 1,
        qovld: 2 * qhimark,
        ..Options::new(variant, 100, 5)
    }
}

/// Numbers right before their wrap, and counters so narrow that they come round again and again;
/// not so narrow that they do so from one look to the next, each time.
const WRAPPING: Start = Start { number: u32::MAX - 1, counter_bits: 4 };

/// Segments of three, so that there are several, and a short one.
const SHORT: v2::Parameters = v2::Parameters { segment: 3, rest_jiffies_max: 1 };

/// Few callbacks at once, and limits that schedules come near to.
const FEW: on_demand::Parameters = on_demand::Parameters {
    callbacks_at_once_min: 2,
    back_off_jiffies: 3,
    force_after_jiffies: 4,
    backlog_objects_max: 20,
    ..on_demand::Parameters::DEFAULT
};

/// An engine, and what became of it and its CPUs.
struct Walk<'a, E> {
    system: Around<'a, E>,
    state: EngineAndCpus<E>,
}

impl<E: Engine + Clone + Hash + Debug> Walk<'_, E> {
    fn number(cpu: usize, step: Step) -> u16 {
        (cpu * STEPS.len() + step as usize) as u16
    }

    /// Takes a step with these answers, if it is possible.
    fn take(&mut self, number: u16, answers: &[u8]) -> Result<(), String> {
        if !self.system.can(&self.state, number) {
            return Ok(());
        }
        let by = By { choice: &mut Choice::replay(answers), told: None };
        match self.system.take(&mut self.state, number, by) {
            Outcome::Violation(what) => Err(what),
            Outcome::Moved | Outcome::Blocked => Ok(()),
        }
    }

    /// A jiffy in which sections end. CPUs that are awake pass through everything; or they stay in
    /// the kernel, where they do what they are asked to, and those asleep do not even hear it.
    fn jiffy(&mut self, round: usize, stays: bool) -> Result<(), String> {
        let (steps, mode): (&[Step], _) = match (stays, round % 3) {
            (true, _) => (&[Unlock, CondResched, Obey, Tick, Softirq], 0),
            // Not as many quiescent states in each: narrow counters might come round from look to
            // look.
            (_, 0) => (&[Unlock, Softirq, Obey, Switch, Switch, Tick], 1 + round % 2),
            _ => (&[Unlock, Softirq, Obey, Switch, Tick], 1 + round % 2),
        };
        for cpu in 0..self.system.cpus.callbacks.len() {
            let is_asleep = self.system.can(&self.state, Self::number(cpu, Wake));
            for step in steps.iter().filter(|step| !(stays && is_asleep && **step == Obey)) {
                self.take(Self::number(cpu, *step), &[mode as u8])?;
            }
        }
        self.take(Self::number(round % self.system.cpus.callbacks.len(), Timer), &[])
    }

    /// Whether no callback waits, no grace period is in progress, and the engine wants nothing;
    /// but for what those who stay as they are do not hear.
    fn is_over(&self, stays: bool) -> bool {
        let EngineAndCpus { engine, outside } = &self.state;
        let waits = (0..self.system.cpus.callbacks.len()).any(|cpu| engine.waiting(cpu) != 0);
        let is_quiet = stays || self.system.is_end(&self.state);
        !waits && is_quiet && outside.grace_periods.iter().all(Option::is_none)
    }
}

/// An engine and its CPUs take the steps of a schedule, as far as they are possible: CPUs, steps
/// and answers. In the end CPUs pass through everything, or stay as they are.
fn walk<E: Engine + Clone + Hash + Debug>(
    engine: E,
    cpus: &Cpus,
    stays: bool,
    schedule: &[(u8, u8, [u8; 4])],
) -> Result<(), String> {
    let system = Around { engine, cpus };
    let mut walk = Walk { state: system.first(), system };
    for (cpu, step, answers) in schedule {
        let cpu = usize::from(*cpu) % cpus.callbacks.len();
        walk.take(Walk::<E>::number(cpu, STEPS[usize::from(*step) % STEPS.len()]), answers)?;
    }
    // Each of the published ring's circuits takes as many rounds as it has CPUs, and a callback
    // waits for three at most. Others need less, and pause more.
    for round in 0..600 {
        if walk.is_over(stays) {
            return Ok(());
        }
        walk.jiffy(round, stays)?;
    }
    Err(format!("there is work left: {:?}", walk.state))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Tree RCU from right before the counter of grace periods wraps, and with CPUs without ticks;
    /// half of the time CPUs stay in the kernel in the end, so that only what a variant does about
    /// holdouts ends a grace period.
    #[test]
    fn nothing_runs_early_and_everything_runs(
        engine in 0..6 + 2 * VARIANTS.len(),
        cpus in 1..=8_usize,
        tickless in 0..4_usize,
        qhimark in 2..20_u64,
        schedule in prop::collection::vec(any::<(u8, u8, [u8; 4])>(), 0..300),
    ) {
        let (store, schedule) = (Heap(cpus), &*schedule);
        let urgencies = &[Background, Normal, Expedited];
        let on = Cpus { callbacks: vec![u8::MAX; cpus], urgencies, may_sleep: true, tickless: 0 };
        let outcome = match engine {
            0 => walk(poll::Global::with(store, WRAPPING, Intact), &on, false, schedule),
            1 => walk(poll::PerCpu::with(store, WRAPPING, Intact), &on, false, schedule),
            2 => walk(tick::Tick::with(store, WRAPPING, Intact), &on, false, schedule),
            3 => walk(Published::with(store, WRAPPING, Intact), &on, false, schedule),
            4 => walk(Relay::with(store, SHORT, WRAPPING, Intact), &on, false, schedule),
            5 => walk(OnDemand::with(store, FEW, WRAPPING, Intact), &on, false, schedule),
            tree => {
                let (variant, stays) = ((tree - 6) / 2, tree % 2 == 1);
                let options = small(VARIANTS[variant], qhimark);
                let start = Sequence::after((u64::MAX >> 1) - 2);
                let last = cpus - tickless.min(cpus)..cpus;
                let on = Cpus { tickless: last.clone().fold(0, |set, cpu| set | 1 << cpu), ..on };
                let tree = Tree::starting_at(start, options, store, Intact).with_tickless(last);
                walk(tree, &on, stays, schedule)
            }
        };
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}
