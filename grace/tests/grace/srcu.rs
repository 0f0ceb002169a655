//! The SRCU machine: laws of its sequence across the wrap, soundness and completeness of its
//! cookies under any driver, and what each delay function makes of a reader that stays.

use grace::Urgency;
use grace::srcu::{
    Action, AdaptiveDelay, Cookie, Delay, Event, Phase, Published, RING, STEPS, Sequence,
    SrcuMachine, Wait,
};
use grace::steps::{Steps, Without};
use proptest::prelude::*;

/// Any count of ended grace periods, those around the wrap as likely as all others.
fn ended() -> impl Strategy<Value = u64> {
    const HALF: u64 = 1 << 61;
    prop_oneof![any::<u64>(), (u64::MAX >> 2) - 5..=u64::MAX >> 2, HALF - 5..=HALF + 5, 0..5u64]
}

fn sequence() -> impl Strategy<Value = Sequence> {
    (ended(), 0..3u8).prop_map(|(ended, phase)| {
        let idle = Sequence::after(ended);
        match phase {
            0 => idle,
            1 => idle.begin(),
            _ => idle.begin().flipped(),
        }
    })
}

fn next(sequence: Sequence) -> Sequence {
    sequence.begin().flipped().end()
}

proptest! {
    #[test]
    fn a_cookie_is_done_exactly_after_a_full_grace_period(start in sequence()) {
        let cookie = start.snapshot();
        prop_assert!(!start.is_done(cookie));
        let mut now = start;
        if start.phase() != Phase::Idle {
            now = start.flipped().end();
            prop_assert!(!now.is_done(cookie), "the one in progress does not count");
        }
        prop_assert!(!now.begin().is_done(cookie));
        prop_assert!(!now.begin().flipped().is_done(cookie));
        prop_assert!(next(now).is_done(cookie));
    }

    #[test]
    fn phases_follow_one_another(start in ended()) {
        let idle = Sequence::after(start);
        prop_assert_eq!(idle.phase(), Phase::Idle);
        prop_assert_eq!(idle.begin().phase(), Phase::Scan1);
        prop_assert_eq!(idle.begin().begin(), idle.begin());
        prop_assert_eq!(idle.flipped(), idle);
        prop_assert_eq!(idle.end(), idle);
        prop_assert_eq!(idle.begin().flipped().phase(), Phase::Scan2);
        prop_assert_eq!(next(idle).phase(), Phase::Idle);
        prop_assert_eq!(next(idle).ended(), idle.ended().wrapping_add(1) & (u64::MAX >> 2));
        prop_assert_eq!(Sequence::from_bits(idle.to_bits()), idle);
    }

    #[test]
    fn a_cookie_is_the_sequence_s_that_gave_it_now_and_later(
        start in sequence(),
        later in 0..1u64 << 60,
        ahead in 1..1u64 << 60,
        state in 1..4u64,
    ) {
        let (cookie, _) = given!(start, later, 4 * ahead);
        let none = Cookie::from_bits(cookie.to_bits().wrapping_sub(state));
        prop_assert!(!start.has_given(none), "no cookie");
    }

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
                prop_assert!(near > 0 || cookie.to_bits() & 3 != 0);
            }
        }
    }

    #[test]
    fn done_stays_done(start in sequence(), later in 0..1u64 << 60) {
        let cookie = start.snapshot();
        let done = next(next(start));
        let later = Sequence::after(done.ended().wrapping_add(later));
        prop_assert!(later.is_done(cookie));
        prop_assert!(later.is_done(Cookie::done_at(done)));
        prop_assert!(later.snapshot().is_at_or_after(cookie));
        prop_assert!(!cookie.is_at_or_after(later.snapshot()));
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

fn answer(action: Action, drained: bool) -> Option<Event> {
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

/// A cookie, and how many grace periods had begun when it was given.
struct Waiter {
    cookie: Cookie,
    begun: u64,
}

/// Follows a machine through any moves: cookies are done exactly when a grace period that began
/// after them has ended; indexes are checked and flipped in order. Returns how many places of the
/// ring were in use at once.
fn follow<D: Delay, S: Steps>(
    mut machine: SrcuMachine<D, S>,
    moves: &[Move],
) -> Result<u32, String> {
    let mut waiters: Vec<Waiter> = Vec::new();
    let (mut begun, mut ended_latest) = (0u64, 0u64);
    let (mut seen_drained, mut old_index) = ([false; 2], 0);
    let (mut queued, mut places_max) = (false, 0);
    for step in moves {
        let before = machine.clone();
        match *step {
            Move::Request(urgency) => {
                waiters.push(Waiter { cookie: machine.request(urgency), begun });
            }
            Move::Tick(jiffies) => machine.tick(jiffies),
            Move::Blurt(event) => {
                let fits = answer(machine.pending(), true) == Some(event);
                if !fits && (machine.observe(event).is_ok() || machine != before) {
                    return Err(format!("{event:?} is not refused"));
                }
            }
            Move::Answer(drained) => {
                let action = machine.pending();
                if action == Action::Await && !queued {
                    continue; // no thread will run the worker
                }
                match action {
                    Action::Queue(_) => queued = true,
                    Action::Await => queued = false,
                    Action::Check { index } => seen_drained[usize::from(index)] |= drained,
                    Action::Flip { to } if !seen_drained[usize::from(to)] => {
                        return Err("an index that was not seen drained becomes current".into());
                    }
                    // A reader in the other one has yet to be seen to leave.
                    Action::Flip { to } => seen_drained[usize::from(1 ^ to)] = false,
                    _ => {}
                }
                if let Some(event) = answer(action, drained) {
                    machine.observe(event).map_err(|refused| refused.to_string())?;
                }
                if matches!(action, Action::Flip { .. }) && machine.current_index() > 1 {
                    return Err("there are two indexes".into());
                }
            }
        }
        let (was, is) = (before.sequence(), machine.sequence());
        if was.ended() != is.ended() {
            if !seen_drained[usize::from(old_index)] {
                return Err("ended, and the old index was not seen drained".into());
            }
            ended_latest = begun;
        }
        if is.phase() != Phase::Idle && (was.phase() == Phase::Idle || was.ended() != is.ended()) {
            begun += 1;
            seen_drained = [false; 2];
            old_index = machine.current_index();
        }
        for waiter in &waiters {
            let should = ended_latest > waiter.begun;
            if is.is_done(waiter.cookie) != should {
                return Err(format!("done: {}, but {should} is right", !should));
            }
        }
        places_max = places_max.max(places_in_use(&machine)?);
    }
    settle(machine, queued, &waiters)?;
    Ok(places_max)
}

/// The cookies that may have callbacks now have places of their own: how many?
fn places_in_use<D: Delay, S: Steps>(machine: &SrcuMachine<D, S>) -> Result<u32, String> {
    let mut cookies = Vec::new();
    if let Action::HandOut { sequence, .. } = machine.pending() {
        cookies.push(Cookie::done_at(sequence));
    }
    let sequence = machine.sequence();
    if sequence.phase() != Phase::Idle {
        cookies.push(Cookie::done_at(sequence.end())); // the one in progress
    }
    cookies.push(sequence.snapshot());
    let mut places = [false; RING as usize];
    for cookie in &cookies {
        if core::mem::replace(&mut places[usize::from(cookie.place())], true) {
            return Err("two cookies share a place".into());
        }
    }
    Ok(cookies.len() as u32)
}

/// With every index drained, all that was asked for ends.
fn settle<D: Delay, S: Steps>(
    mut machine: SrcuMachine<D, S>,
    mut queued: bool,
    waiters: &[Waiter],
) -> Result<(), String> {
    for _ in 0..100 {
        let Some(event) = answer(machine.pending(), true) else { break };
        if event == Event::Runs && !core::mem::take(&mut queued) {
            break;
        }
        queued |= event == Event::Queued;
        machine.observe(event).map_err(|refused| refused.to_string())?;
    }
    let all = waiters.iter().all(|waiter| machine.sequence().is_done(waiter.cookie));
    if all { Ok(()) } else { Err("somebody waits for ever".into()) }
}

proptest! {
    #[test]
    fn cookies_are_sound_and_complete(start in ended(), moves in moves(), variant in 0..6usize) {
        let start = Sequence::after(start);
        let outcome = match variant {
            0 => follow(SrcuMachine::new(Published::V5_18, start), &moves),
            1 => follow(SrcuMachine::new(Published::V5_19_RC1, start), &moves),
            2 => follow(SrcuMachine::new(Published::FIRST_DIFF, start), &moves),
            3 => follow(SrcuMachine::new(Published::BLOCK_REMOVED, start), &moves),
            4 => follow(SrcuMachine::new(Published::final_at(250), start), &moves),
            _ => follow(SrcuMachine::new(AdaptiveDelay::at(250), start), &moves),
        };
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}

/// A run of moves that has everything in it: requests in each phase, checks that fail, ticks.
fn a_long_story() -> Vec<Move> {
    let mut random = 12_345u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    let story = (0..2_000).map(|_| match next() % 16 {
        0 => Move::Request(Urgency::Normal),
        1 => Move::Request(Urgency::Expedited),
        2 => Move::Tick((next() % 3) as u32),
        _ => Move::Answer(next() % 2 == 0),
    });
    // And at last a request in mid grace period, which only the machine follows up.
    let rest = [Move::Answer(true); 60];
    let in_progress = [Move::Answer(true); 3];
    let request = [Move::Request(Urgency::Normal)];
    story.chain(rest).chain(request).chain(in_progress).chain(request).collect()
}

#[test]
fn each_step_that_matters_to_cookies_is_missed() {
    let story = a_long_story();
    let start = Sequence::after(u64::MAX >> 2);
    for step in STEPS {
        let machine = SrcuMachine::with_steps(Published::V5_19_RC1, start, Without(step));
        let matters = !matches!(
            *step,
            // These change when something is done, not what.
            "begin-while-handing-out"
                | "note-expedited"
                | "reset-count"
                | "throttle"
                | "extra-check"
        );
        assert_eq!(follow(machine, &story).is_err(), matters, "{step}");
    }
    // Three at once, since one more grace period may begin while callbacks are handed out; else
    // two.
    assert_eq!(follow(SrcuMachine::new(Published::V5_19_RC1, start), &story), Ok(3));
    let late = Without("begin-while-handing-out");
    let late = SrcuMachine::with_steps(Published::V5_19_RC1, start, late);
    assert_eq!(follow(late, &story), Ok(2));
}

/// Begins an expedited grace period and goes to its second scan, whose index has a reader in it.
fn in_second_scan<D: Delay, S: Steps>(machine: &mut SrcuMachine<D, S>) {
    machine.request(Urgency::Expedited);
    while machine.sequence().phase() != Phase::Scan2 {
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
    let mut machine = SrcuMachine::new(delay, Sequence::after(0));
    in_second_scan(&mut machine);
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
        let mut machine = SrcuMachine::new(delay, Sequence::after(0));
        in_second_scan(&mut machine);
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
        let mut machine = SrcuMachine::new(delay, Sequence::after(0));
        in_second_scan(&mut machine);
        let waits = [0, 1, 1, 1, 50].map(|jiffies| {
            machine.tick(jiffies);
            failing_run(&mut machine).1
        });
        assert_eq!(waits, expected.map(Wait::Jiffies), "{delay:?}");
    }
}

#[test]
fn naps_grow_by_half_from_microseconds_to_ten_jiffies() {
    let mut machine = SrcuMachine::new(AdaptiveDelay::at(250), Sequence::after(0));
    in_second_scan(&mut machine);
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
            let mut machine = SrcuMachine::new(delay, Sequence::after(0));
            in_second_scan(&mut machine);
            failing_run(&mut machine);
            let few = AdaptiveDelay { runs_max: 0, wait_jiffies_max: 0, ..delay };
            let mut machine = SrcuMachine::new(few, Sequence::after(0));
            in_second_scan(&mut machine);
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
