//! What sets the engines apart: what they ask for, and what they leave alone.

use grace::Urgency::{self, Background, Expedited, Normal};
use grace::steps::Intact;
use kernel::engine::on_demand::{self, OnDemand, callbacks_at_once};
use kernel::engine::store::Fixed;
use kernel::engine::token::{Published, Relay, v2};
use kernel::engine::{Access, Engine, Line, Mode, Start, poll, tick};

use crate::MAX;
use crate::recorder::{Recorder, callback};

const CPUS: usize = 8;
const START: Start = Start { number: 0, counter_bits: 32 };

fn relay(cpus: usize) -> Relay<Fixed<MAX>> {
    Relay::with(Fixed::<MAX>(cpus), v2::Parameters::default(), START, Intact)
}

fn on_demand() -> OnDemand<Fixed<MAX>> {
    OnDemand::with(Fixed::<MAX>(CPUS), on_demand::Parameters::DEFAULT, START, Intact)
}

/// Raised softirqs run, until none is left or `times` have run.
fn run_softirqs(engine: &mut impl Engine, host: &mut Recorder, times: usize) {
    for _ in 0..times {
        if host.raised.is_empty() {
            return;
        }
        let cpu = host.raised.remove(0);
        engine.softirq(cpu, host);
    }
}

/// A tick on each CPU, and the softirqs raised there.
fn tick_everybody(engine: &mut impl Engine, host: &mut Recorder, mode: Mode) {
    for cpu in 0..CPUS {
        engine.tick(cpu, mode, host);
        run_softirqs(engine, host, CPUS);
    }
}

#[test]
fn poll_with_one_list_forces_everybody_and_runs_all_callbacks_where_it_polls() {
    let (mut engine, mut host) =
        (poll::Global::with(Fixed::<MAX>(CPUS), START, Intact), Recorder::default());
    engine.queue(3, callback(Background), &mut host);
    run_softirqs(&mut engine, &mut host, 1);
    engine.queue(5, callback(Background), &mut host);
    assert_eq!(host.resched, (0..CPUS).collect::<Vec<_>>());
    assert_eq!(host.raised, [3], "one polls for all");
    host.clear();
    (0..CPUS).for_each(|cpu| engine.context_switch(cpu, &mut host));
    engine.softirq(3, &mut host);
    assert_eq!((&host.invoked[..], host.ended, host.began), (&[(3, 1)][..], 1, 1));
    (0..CPUS).for_each(|cpu| engine.context_switch(cpu, &mut host));
    engine.softirq(3, &mut host);
    assert_eq!(host.invoked, [(3, 1), (5, 1)], "each after a grace period of its own");
}

#[test]
fn poll_with_one_list_looks_at_those_only_who_have_not_passed() {
    let (mut engine, mut host) =
        (poll::Global::with(Fixed::<MAX>(CPUS), START, Intact), Recorder::default());
    engine.queue(0, callback(Background), &mut host);
    engine.softirq(0, &mut host);
    (2..CPUS).for_each(|cpu| engine.context_switch(cpu, &mut host));
    engine.softirq(0, &mut host);
    host.clear();
    engine.softirq(0, &mut host);
    assert_eq!(host.count(Access::Read), 2, "{:?}", host.touched);
    assert!((0..CPUS).all(|cpu| engine.is_holdout(0, cpu) == (cpu < 2)));
}

#[test]
fn poll_with_a_list_for_each_has_a_grace_period_for_each_and_shares_no_line() {
    let (mut engine, mut host) =
        (poll::PerCpu::with(Fixed::<MAX>(CPUS), START, Intact), Recorder::default());
    for cpu in 0..CPUS {
        engine.queue(cpu, callback(Background), &mut host);
        engine.softirq(cpu, &mut host);
        assert_eq!(host.resched.len(), CPUS, "all, itself included");
        host.resched.clear();
    }
    assert_eq!(host.began, CPUS);
    assert!(host.touched.iter().all(|(line, _)| matches!(line, Line::Cpu(_))));
    assert_eq!(host.count(Access::Lock) + host.count(Access::Atomic), 0);
    // A look stops at the first that has not moved.
    (0..3).for_each(|cpu| engine.context_switch(cpu, &mut host));
    host.clear();
    engine.softirq(7, &mut host);
    assert_eq!(host.count(Access::Read), 4);
}

#[test]
fn tick_takes_two_batches_even_from_idle_and_forces_nobody() {
    let (mut engine, mut host) =
        (tick::Tick::with(Fixed::<MAX>(CPUS), START, Intact), Recorder::default());
    engine.queue(1, callback(Expedited), &mut host);
    assert_eq!(host.touched, [(Line::Cpu(1), Access::Write)], "nothing shared, nothing raised");
    let mut ticks = 0;
    while host.invoked.is_empty() {
        tick_everybody(&mut engine, &mut host, Mode::User);
        ticks += 1;
        assert!(ticks < 10);
    }
    assert_eq!((host.began, host.ended), (2, 2));
    // Queued in the middle of a jiffy: 45 ms at 100 Hz. Each batch waits for the tick on which a
    // CPU sees that it is waited for, and the one on which it sees that its counter has moved.
    assert_eq!(ticks, 5);
    assert_eq!((host.resched.len(), host.timers.len()), (0, 0));
}

#[test]
fn the_published_ring_shares_a_count() {
    let (mut engine, mut host) =
        (Published::with(Fixed::<MAX>(CPUS), START, Intact), Recorder::default());
    let counted = |host: &Recorder, access| {
        host.touched.iter().filter(|touched| **touched == (Line::Global(0), access)).count()
    };
    for _ in 0..5 {
        engine.queue(2, callback(Background), &mut host);
    }
    assert_eq!((counted(&host, Access::Atomic), counted(&host, Access::Read)), (5, 0));
    let mut switches = 0;
    while host.invoked.is_empty() {
        engine.context_switch(CPUS - 1 - switches % CPUS, &mut host);
        switches += 1;
    }
    assert_eq!((counted(&host, Access::Atomic), counted(&host, Access::Read)), (10, switches));
    assert!(switches > CPUS, "a circuit, after the token has come");
    host.clear();
    engine.tick(0, Mode::User, &mut host);
    assert_eq!(host, Recorder::default(), "a tick in user mode is not made use of");
}

#[test]
fn the_relay_touches_nothing_shared_while_nobody_waits() {
    let (mut engine, mut host) = (relay(40), Recorder::default());
    for cpu in 0..40 {
        engine.context_switch(cpu, &mut host);
        assert_eq!(host.touched, [(Line::Node(cpu / 16), Access::Read)]);
        host.clear();
    }
}

#[test]
fn the_relay_has_no_atomic_instruction_where_cpus_are_quiescent_or_queue() {
    let (mut engine, mut host) = (relay(CPUS), Recorder::default());
    engine.queue(0, callback(Background), &mut host);
    engine.tick(0, Mode::Kernel, &mut host);
    assert_eq!(host.count(Access::Lock) + host.count(Access::Atomic), 0);
    engine.softirq(0, &mut host);
    assert_eq!(host.began, 1);
    host.clear();
    for cpu in 0..CPUS {
        engine.queue(cpu, callback(Background), &mut host);
        engine.context_switch(cpu, &mut host);
        assert!(!engine.is_holdout(0, cpu), "all pass in one round, in order");
    }
    assert_eq!(host.count(Access::Lock) + host.count(Access::Atomic), 0);
    let written = host.touched.iter().filter(|(_, access)| *access == Access::Write);
    assert!(written.clone().all(|(line, _)| matches!(line, Line::Cpu(_))));
    assert_eq!(written.count(), 2 * CPUS);
}

#[test]
fn the_relay_nudges_one_of_each_segment_and_passes_over_who_sleeps() {
    let parameters = v2::Parameters { segment: 4, rest_jiffies_max: 1 };
    let mut engine = Relay::with(Fixed::<MAX>(CPUS), parameters, START, Intact);
    let mut host = Recorder::default();
    engine.enter_eqs(0, &mut host);
    engine.queue(7, callback(Background), &mut host);
    // No CPU passes through the scheduler unless asked to; ticks find all CPUs in the kernel.
    let mut jiffies = 0;
    while host.ended == 0 {
        (1..CPUS).for_each(|cpu| engine.tick(cpu, Mode::Kernel, &mut host));
        run_softirqs(&mut engine, &mut host, CPUS);
        assert!(host.resched.len() <= 2 && !host.resched.contains(&0), "{:?}", host.resched);
        let nudged = core::mem::take(&mut host.resched);
        nudged.into_iter().for_each(|cpu| engine.context_switch(cpu, &mut host));
        jiffies += 1;
        // Four stations, each at most two jiffies before it is nudged; a jiffy to begin, one to
        // end.
        assert!(jiffies <= 10, "{engine:?}");
    }
}

/// An engine with a callback queued on CPU 2, and the softirqs raised by that run.
fn on_demand_with(urgency: Urgency, is_over_budget: bool) -> (OnDemand<Fixed<MAX>>, Recorder) {
    let mut engine = on_demand();
    let mut host = Recorder { is_over_budget, ..Recorder::default() };
    engine.enter_eqs(6, &mut host);
    host.clear();
    engine.queue(2, callback(urgency), &mut host);
    run_softirqs(&mut engine, &mut host, 1);
    (engine, host)
}

#[test]
fn on_demand_forces_nobody_while_nobody_waits() {
    let (mut engine, mut host) = on_demand_with(Background, false);
    assert_eq!((host.began, host.resched.len()), (0, 0), "callbacks gather");
    let mut jiffies = 0;
    while host.resched.is_empty() {
        assert_eq!(host.ended, 0);
        jiffies += 1;
        // CPU 4 has a long section, and no others have softirqs but the first.
        for cpu in (0..CPUS).filter(|&cpu| cpu != 6) {
            engine.tick(cpu, if cpu == 4 { Mode::Kernel } else { Mode::User }, &mut host);
            assert!(host.raised.iter().all(|&raised| raised == 2));
            run_softirqs(&mut engine, &mut host, 1);
        }
    }
    assert_eq!(host.resched, [4]);
    // Those for others to gather, the age, and until the next look, which comes at 5/4 of the last.
    let on_demand::Parameters { gather_jiffies, force_after_jiffies, .. } =
        on_demand::Parameters::DEFAULT;
    let earliest = gather_jiffies + force_after_jiffies;
    assert!((earliest..=earliest * 5 / 4 + 1).contains(&jiffies), "{jiffies}");
    host.clear();
    engine.context_switch(4, &mut host);
    run_softirqs(&mut engine, &mut host, 1);
    assert_eq!(host.ended, 1, "the last one's report ends it");
    engine.tick(2, Mode::User, &mut host);
    run_softirqs(&mut engine, &mut host, 1);
    assert_eq!(host.invoked, [(2, 1)]);
}

#[test]
fn on_demand_begins_and_forces_at_once_when_somebody_waits() {
    for urgency in [Normal, Expedited] {
        let (mut engine, mut host) = on_demand_with(urgency, false);
        assert_eq!(host.began, 1);
        assert_eq!(host.resched, [0, 1, 2, 3, 4, 5, 7], "all but the one asleep");
        assert_eq!(host.raised.is_empty(), urgency == Normal, "in a hurry it looks without pause");
        for cpu in [0, 1, 2, 3, 4, 5, 7] {
            assert_eq!(host.ended, 0);
            engine.context_switch(cpu, &mut host);
            run_softirqs(&mut engine, &mut host, 1);
        }
        assert_eq!(host.ended, 1, "no tick was needed, and no timer");
        run_softirqs(&mut engine, &mut host, 2);
        assert_eq!(host.invoked, [(2, 1)]);
    }
}

#[test]
fn on_demand_keeps_to_its_budget_unless_somebody_waits_or_memory_runs_low() {
    for (urgency, forced) in [(Background, 0), (Normal, CPUS - 1), (Expedited, CPUS - 1)] {
        let (_, host) = on_demand_with(urgency, true);
        assert_eq!(host.resched.len(), forced, "{urgency:?}");
    }
    let objects = on_demand::Parameters::DEFAULT.backlog_objects_max;
    let (mut engine, mut host) = on_demand_with(Background, true);
    for queued in 1..objects {
        engine.queue(2, callback(Background), &mut host);
        host.touched.clear();
        run_softirqs(&mut engine, &mut host, 1);
        if !host.resched.is_empty() {
            assert!(queued >= objects / 4 * 3 - 1, "not before: {queued}");
            return;
        }
    }
    panic!("nobody was forced, and the limit is reached");
}

#[test]
fn on_demand_sees_the_bytes_of_all_cpus_together() {
    let (bytes_max, bytes) = (8_000, 100);
    let parameters =
        on_demand::Parameters { backlog_bytes_max: bytes_max, ..on_demand::Parameters::DEFAULT };
    let mut engine = OnDemand::with(Fixed::<MAX>(CPUS), parameters, START, Intact);
    let mut host = Recorder { is_over_budget: true, ..Recorder::default() };
    for queued in 1..=bytes_max / bytes {
        engine.queue(queued as usize % CPUS, callback(Background), &mut host);
        run_softirqs(&mut engine, &mut host, 1);
        if !host.resched.is_empty() {
            assert!(queued * bytes >= bytes_max / 4 * 3, "not before: {queued}");
            return;
        }
    }
    panic!("nobody was forced, and the limit is reached");
}

#[test]
fn on_demand_runs_callbacks_a_few_at_a_time_unless_somebody_waits() {
    let parameters = on_demand::Parameters::DEFAULT;
    let at_once = |ready, urgency, is_near_limit| {
        callbacks_at_once(ready, urgency, is_near_limit, &parameters)
    };
    let least = parameters.callbacks_at_once_min;
    assert_eq!(at_once(3, Background, false), 3);
    assert_eq!(at_once(1_000, Background, false), least);
    assert_eq!(at_once(1_280_000, Background, false), 40_000);
    assert_eq!(at_once(1_000, Normal, false), 1_000);
    assert_eq!(at_once(1_000, Background, true), 1_000);
    for callbacks_at_once_shift in [0, 64, u32::MAX] {
        let parameters = on_demand::Parameters {
            callbacks_at_once_shift,
            callbacks_at_once_min: 0,
            ..on_demand::Parameters::DEFAULT
        };
        let expected = if callbacks_at_once_shift == 0 { 1_000 } else { 1 };
        assert_eq!(callbacks_at_once(1_000, Background, false, &parameters), expected);
    }
}

#[test]
fn cpus_out_of_range_are_ignored() {
    fn ignores(mut engine: impl Engine + Clone + PartialEq) {
        let (before, mut host) = (engine.clone(), Recorder::default());
        for cpu in [CPUS, CPUS + 1, usize::MAX] {
            engine.queue(cpu, callback(Expedited), &mut host);
            engine.context_switch(cpu, &mut host);
            engine.tick(cpu, Mode::User, &mut host);
            engine.softirq(cpu, &mut host);
            engine.timer(cpu, &mut host);
            engine.cond_resched(cpu, &mut host);
            engine.enter_eqs(cpu, &mut host);
            engine.exit_eqs(cpu, &mut host);
            assert!(!engine.is_holdout(cpu, 0) && !engine.is_holdout(0, cpu));
            assert_eq!(engine.waiting(cpu), 0);
        }
        assert!(engine == before);
        assert_eq!(host, Recorder::default());
    }
    ignores(poll::Global::with(Fixed::<MAX>(CPUS), START, Intact));
    ignores(poll::PerCpu::with(Fixed::<MAX>(CPUS), START, Intact));
    ignores(tick::Tick::with(Fixed::<MAX>(CPUS), START, Intact));
    ignores(Published::with(Fixed::<MAX>(CPUS), START, Intact));
    ignores(relay(CPUS));
    ignores(on_demand());
}
