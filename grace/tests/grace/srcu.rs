//! The SRCU machine: what it refuses, and what each delay function makes of a reader that stays.
//! That the machine needs each of its steps is explored: `verify/explore/src/srcu.rs`, and
//! `srcu_orders` here.

use grace::Urgency;
use grace::srcu::{
    Action, AdaptiveDelay, AnyDelay, Cookie, Delay, Event, Phase, Published, Sequence, SrcuMachine,
    Wait,
};
use grace::steps::{Steps, Without};
use proptest::prelude::*;

use crate::ended;

proptest! {
    #![proptest_config(crate::written_nowhere())]

    /// A cookie that is not refused is reached; one that is refused has changed nothing.
    #[test]
    fn a_foreign_cookie_is_refused_or_done_after_two_grace_periods(
        start in ended(),
        near in -24..24_i64,
        busy: bool,
    ) {
        let mut machine = SrcuMachine::new(AdaptiveDelay::at(1_000), Sequence::after(start));
        if busy {
            machine.request(Urgency::Expedited);
        }
        let cookie = Cookie::from_bits(machine.snapshot().to_bits().wrapping_add_signed(near));
        let before = machine.clone();
        match machine.require(cookie, Urgency::Expedited) {
            Ok(()) => {
                let mut steps = 0;
                while let Some(event) = answer(machine.pending(), true) {
                    machine.observe(event).expect("the answer fits");
                    steps += 1;
                    prop_assert!(steps < 40, "two grace periods at most");
                }
                prop_assert!(machine.sequence().is_done(cookie));
            }
            Err(grace::NotGiven) => {
                prop_assert!(machine == before);
                prop_assert!(near > 0 || cookie.to_bits() & 1 != 0);
            }
        }
    }
}

/// What a driver does next.
#[derive(Clone, Copy, Debug)]
enum Move {
    Request(Urgency),
    Tick(u32),
    /// Reports the pending action as done; `true` for a check that finds the index drained.
    Answer(bool),
    /// Reports something whether it fits or not.
    Blurt(Event),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let urgency = prop_oneof![Just(Urgency::Normal), Just(Urgency::Expedited)];
    let event = prop_oneof![
        Just(Event::Queued),
        Just(Event::Runs),
        Just(Event::Checked { drained: true }),
        Just(Event::Spun),
        Just(Event::Flipped),
        Just(Event::HandedOut),
    ];
    let one = prop_oneof![
        2 => urgency.prop_map(Move::Request),
        1 => (0..20u32).prop_map(Move::Tick),
        12 => any::<bool>().prop_map(Move::Answer),
        1 => event.prop_map(Move::Blurt),
    ];
    proptest::collection::vec(one, 0..200)
}

/// What the machine waits for; a check finds the index drained, or not.
pub(crate) fn answer(action: Action, drained: bool) -> Option<Event> {
    Some(match action {
        Action::Idle => return None,
        Action::Queue(_) => Event::Queued,
        Action::Await => Event::Runs,
        Action::Check { .. } => Event::Checked { drained },
        Action::Spin { .. } => Event::Spun,
        Action::Flip { .. } => Event::Flipped,
        Action::HandOut { .. } => Event::HandedOut,
    })
}

proptest! {
    #![proptest_config(crate::written_nowhere())]

    /// What the explorer does not try. And [TB-4].
    #[test]
    fn only_the_answer_is_accepted_and_nothing_ends_while_callbacks_are_handed_out(
        start in ended(),
        moves in moves(),
        delay in 0..6_usize,
    ) {
        let delays = [
            AnyDelay::Published(Published::V5_18),
            AnyDelay::Published(Published::V5_19_RC1),
            AnyDelay::Published(Published::FIRST_DIFF),
            AnyDelay::Published(Published::BLOCK_REMOVED),
            AnyDelay::Published(Published::final_at(250)),
            AnyDelay::Adaptive(AdaptiveDelay::at(250)),
        ];
        let mut machine = SrcuMachine::new(delays[delay], Sequence::after(start));
        for step in moves {
            match step {
                Move::Request(urgency) => _ = machine.request(urgency),
                Move::Tick(jiffies) => machine.tick(jiffies),
                Move::Answer(drained) => {
                    if let Some(event) = answer(machine.pending(), drained) {
                        machine.observe(event).expect("it is the answer");
                    }
                }
                Move::Blurt(event) => {
                    let before = machine.clone();
                    let fits = answer(machine.pending(), true) == Some(event);
                    prop_assert!(fits || machine.observe(event).is_err() && machine == before);
                }
            }
            if let Action::HandOut { sequence, .. } = machine.pending() {
                prop_assert_eq!(machine.sequence().ended(), sequence.ended());
            }
        }
    }
}

#[test]
fn a_grace_period_may_begin_while_callbacks_are_handed_out() {
    let phase = |step| {
        let delay = Published::V5_19_RC1;
        let mut machine = SrcuMachine::with_steps(delay, Sequence::after(0), Without(step));
        machine.request(Urgency::Normal);
        while !matches!(machine.pending(), Action::HandOut { .. }) {
            let event = answer(machine.pending(), true).expect("a grace period was asked for");
            machine.observe(event).expect("it is the answer");
        }
        machine.request(Urgency::Normal);
        machine.phase()
    };
    assert_eq!(phase("no such step"), Phase::Scan1);
    assert_eq!(phase("begin-while-handing-out"), Phase::Idle);
}

/// One in the second scan of an expedited grace period, whose index has a reader in it.
fn second_scan<D: Delay>(delay: D) -> SrcuMachine<D> {
    let mut machine = SrcuMachine::new(delay, Sequence::after(0));
    in_second_scan(&mut machine);
    machine
}

/// Begins an expedited grace period and goes to its second scan.
fn in_second_scan<D: Delay, S: Steps>(machine: &mut SrcuMachine<D, S>) {
    machine.request(Urgency::Expedited);
    while machine.phase() != Phase::Scan2 {
        let event = answer(machine.pending(), true).expect("a grace period was asked for");
        machine.observe(event).expect("it is the answer");
    }
}

/// One run that fails: how many checks it makes, and how long the worker waits then.
fn failing_run<D: Delay, S: Steps>(machine: &mut SrcuMachine<D, S>) -> (u32, Wait) {
    let mut checks = 0;
    loop {
        let action = machine.pending();
        checks += u32::from(matches!(action, Action::Check { .. }));
        let event = answer(action, false).expect("it is not idle");
        machine.observe(event).expect("it is the answer");
        if let Action::Queue(wait) = machine.pending() {
            machine.observe(Event::Queued).expect("it is the answer");
            return (checks, wait);
        }
    }
}

/// How many runs fail before the worker first waits, with the tick not coming.
fn runs_before_a_wait<D: Delay>(delay: D) -> u32 {
    let mut machine = second_scan(delay);
    (1..10_000).find(|_| !failing_run(&mut machine).1.is_none()).unwrap_or(u32::MAX)
}

#[test]
fn each_variant_spins_as_long_as_the_table_says() {
    assert_eq!(runs_before_a_wait(Published::V5_18), u32::MAX, "a worker that never sleeps");
    assert_eq!(runs_before_a_wait(Published::V5_19_RC1), 1);
    assert_eq!(runs_before_a_wait(Published::FIRST_DIFF), 1, "three are used up in the first run");
    assert_eq!(runs_before_a_wait(Published::BLOCK_REMOVED), 101, "the throttle");
    assert_eq!(runs_before_a_wait(Published::final_at(250)), 501, "1,000, two a run");
    assert_eq!(runs_before_a_wait(Published::final_at(1_000)), 201);
    assert_eq!(runs_before_a_wait(AdaptiveDelay::at(250)), 1);
}

#[test]
fn expedited_runs_make_two_checks_and_three_and_normal_ones_one_and_two() {
    let mut machine = SrcuMachine::new(Published::V5_18, Sequence::after(0));
    machine.request(Urgency::Expedited);
    assert_eq!(machine.pending(), Action::Queue(Wait::NONE));
    machine.observe(Event::Queued).expect("it is the answer");
    assert_eq!(failing_run(&mut machine), (2, Wait::NONE));
    in_second_scan(&mut machine);
    assert_eq!(failing_run(&mut machine), (3, Wait::NONE));
    let mut machine = SrcuMachine::new(Published::V5_18, Sequence::after(0));
    machine.request(Urgency::Normal);
    assert_eq!(machine.pending(), Action::Queue(Wait::Jiffies(1)));
    machine.observe(Event::Queued).expect("it is the answer");
    assert_eq!(failing_run(&mut machine), (1, Wait::Jiffies(1)));
}

#[test]
fn the_first_release_candidate_delays_callbacks_too() {
    let delay_of = |delay: Published| {
        let mut machine = second_scan(delay);
        failing_run(&mut machine);
        machine.tick(2); // the timer wheel makes two of one
        loop {
            if let Action::HandOut { delay_jiffies, .. } = machine.pending() {
                return delay_jiffies;
            }
            let event = answer(machine.pending(), true).expect("it is not idle");
            machine.observe(event).expect("it is the answer");
        }
    };
    assert_eq!(delay_of(Published::V5_18), 0);
    assert_eq!(delay_of(Published::V5_19_RC1), 1);
    assert_eq!(delay_of(Published::FIRST_DIFF), 1);
    assert_eq!(delay_of(Published::final_at(250)), 0);
}

#[test]
fn waits_grow_with_the_age_up_to_ten_jiffies() {
    for (delay, expected) in [
        (Published::V5_19_RC1, [1, 1, 2, 3, 10]),
        (Published::FIRST_DIFF, [1, 1, 1, 2, 10]),
        (Published::V5_18, [0; 5]),
    ] {
        let mut machine = second_scan(delay);
        let waits = [0, 1, 1, 1, 50].map(|jiffies| {
            machine.tick(jiffies);
            failing_run(&mut machine).1
        });
        assert_eq!(waits, expected.map(Wait::Jiffies), "{delay:?}");
    }
}

#[test]
fn naps_grow_by_half_from_microseconds_to_ten_jiffies() {
    let mut machine = second_scan(AdaptiveDelay::at(250));
    let mut naps = Vec::new();
    for _ in 0..20 {
        naps.push(failing_run(&mut machine).1);
    }
    let short = [50, 75, 112, 168, 252, 378, 567, 850, 1_275, 1_912, 2_868].map(Wait::Microseconds);
    let long = [1, 1, 2, 3, 5, 8, 10, 10, 10].map(Wait::Jiffies);
    assert_eq!(naps, [short.as_slice(), long.as_slice()].concat());
    assert_eq!(runs_before_a_wait(AdaptiveDelay { runs_max: 5, ..AdaptiveDelay::at(250) }), 5);
}

#[test]
fn a_parameter_that_makes_no_sense_panics_nowhere() {
    for nap_us in [0, 1, u32::MAX] {
        for jiffy_us in [0, 1, u32::MAX] {
            let most = u32::MAX;
            let delay = AdaptiveDelay {
                nap_us,
                jiffy_us,
                runs_max: most,
                wait_jiffies_max: most,
                ..AdaptiveDelay::at(0)
            };
            let mut machine = second_scan(delay);
            failing_run(&mut machine);
            let few = AdaptiveDelay { runs_max: 0, wait_jiffies_max: 0, ..delay };
            let mut machine = second_scan(few);
            (0..100).for_each(|_| assert!(!failing_run(&mut machine).1.is_none()));
        }
    }
    assert_eq!(Published::final_at(0).no_delay_per_phase_max, Some(1_000));
}

#[test]
fn a_synchronous_grace_period_is_expedited_after_a_while_of_nothing() {
    let mut machine = SrcuMachine::new(Published::V5_18, Sequence::after(0));
    assert_eq!(machine.urgency_of_synchronize(25_000), Urgency::Normal);
    assert_eq!(machine.urgency_of_synchronize(25_001), Urgency::Expedited);
    machine.request(Urgency::Normal);
    assert_eq!(machine.urgency_of_synchronize(25_001), Urgency::Normal, "there is something to do");
}
