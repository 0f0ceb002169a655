//! The machine under random requests and events, fitting and ill-fitting.
//!
//! A reference that is obviously right stands beside it: it remembers, for each request, whether a
//! fence, an announcement and a scan that found no holdout came after it, in this order.

use grace::policy::{Adaptive, Poll, Tick, Token};
use grace::{
    Action, AnyPolicy, Cookie, Event, Hint, Machine, Number, Policy, Refused, Sequence, Start,
    Urgency,
};
use proptest::prelude::*;

const POLICY: Adaptive = Adaptive { looks_max: 2, looks_max_expedited: 5 };

fn policy() -> impl Strategy<Value = AnyPolicy> {
    prop_oneof![
        2 => Just(AnyPolicy::Adaptive(POLICY)),
        1 => Just(AnyPolicy::Poll(Poll { looks_max: 3 })),
        1 => Just(AnyPolicy::Tick(Tick)),
        1 => Just(AnyPolicy::Token(Token { looks_max: 2 })),
    ]
}

/// Counters anywhere, often right before their wrap; numbers from one bit to all.
fn start() -> impl Strategy<Value = Start> {
    let ended = prop_oneof![any::<u64>(), (u64::MAX >> 1) - 3..=u64::MAX >> 1];
    let number = prop_oneof![any::<u32>(), u32::MAX - 3..=u32::MAX];
    let bits = prop_oneof![1..=32u32, Just(0), Just(40), 1..=2u32];
    (ended, number, bits).prop_map(|(ended, number, number_bits)| Start {
        sequence: Sequence::after(ended),
        number: Number(number),
        number_bits,
    })
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Request(Urgency),
    Require(u64, Urgency),
    Poll,
    /// What the machine waits for; a scan finds this many, and a fence may find the driver alone.
    Answer {
        holdouts: usize,
        alone: bool,
    },
    /// Whatever comes.
    Observe(Event),
}

fn urgency() -> impl Strategy<Value = Urgency> {
    prop_oneof![Just(Urgency::Background), Just(Urgency::Normal), Just(Urgency::Expedited)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Fenced),
        Just(Event::Alone),
        Just(Event::Announced),
        (0..3usize).prop_map(|holdouts| Event::Scanned { holdouts }),
        Just(Event::Woken),
        Just(Event::Completed),
        Just(Event::Abandoned),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let answer = (prop_oneof![3 => Just(0), 1 => 1..3usize], prop::bool::weighted(0.1));
    prop_oneof![
        3 => urgency().prop_map(Step::Request),
        1 => (any::<u64>(), urgency()).prop_map(|(bits, urgency)| Step::Require(bits, urgency)),
        4 => Just(Step::Poll),
        12 => answer.prop_map(|(holdouts, alone)| Step::Answer { holdouts, alone }),
        2 => event().prop_map(Step::Observe),
    ]
}

fn answer(action: Action, holdouts: usize, alone: bool) -> Option<Event> {
    Some(match action {
        Action::Idle => return None,
        Action::Fence if alone => Event::Alone,
        Action::Fence => Event::Fenced,
        Action::Announce(_) => Event::Announced,
        Action::Scan(_) => Event::Scanned { holdouts },
        Action::Wait(_) => Event::Woken,
        Action::Complete(_) => Event::Completed,
    })
}

/// How far the grace period that serves a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    NotYet,
    Fenced,
    Announced,
    Waited,
}

/// What must have happened since a request.
#[derive(Debug)]
struct Asked {
    cookie: Cookie,
    served: Served,
}

fn advance(asked: &mut [Asked], event: Event) {
    for request in asked {
        request.served = match (event, request.served) {
            (Event::Abandoned, served) if served != Served::Waited => Served::NotYet,
            (Event::Alone, _) => Served::Waited,
            (Event::Fenced, Served::NotYet) => Served::Fenced,
            (Event::Announced, Served::Fenced) => Served::Announced,
            (Event::Scanned { holdouts: 0 }, Served::Announced) => Served::Waited,
            (_, served) => served,
        };
    }
}

/// Carries out what is wanted, without holdouts. Returns how many steps that took.
fn finish<P: Policy>(machine: &mut Machine<P>) -> usize {
    for steps in 0.. {
        let Some(event) = answer(machine.poll(), 0, false) else { return steps };
        machine.observe(event).expect("the answer fits");
        assert!(steps < 100, "the machine does not come to rest");
    }
    unreachable!()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..crate::written_nowhere() })]

    #[test]
    fn a_cookie_is_never_done_before_a_full_grace_period(
        policy in policy(),
        start in start(),
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut machine = Machine::new(policy, start);
        let mut asked: Vec<Asked> = Vec::new();
        for step in steps {
            let observed = match step {
                Step::Request(urgency) => {
                    let before = machine.snapshot();
                    let cookie = machine.request(urgency);
                    prop_assert_eq!(before, cookie);
                    prop_assert!(!machine.sequence().is_done(cookie));
                    prop_assert!(machine.is_wanted());
                    asked.push(Asked { cookie, served: Served::NotYet });
                    continue;
                }
                Step::Require(bits, urgency) => {
                    let (before, cookie) = (machine.clone(), Cookie::from_bits(bits));
                    let given = machine.require(cookie, urgency);
                    prop_assert_eq!(given.is_ok(), before.sequence().has_given(cookie));
                    prop_assert!(given.is_ok() || machine == before, "nothing changes");
                    continue;
                }
                Step::Poll => {
                    let action = machine.poll();
                    prop_assert_eq!(action, machine.poll(), "polling twice changes nothing");
                    continue;
                }
                Step::Answer { holdouts, alone } => answer(machine.poll(), holdouts, alone),
                Step::Observe(event) => Some(event),
            };
            let Some(event) = observed else { continue };
            let before = machine.clone();
            match machine.observe(event) {
                Ok(()) => advance(&mut asked, event),
                Err(Refused { event: refused, pending }) => {
                    prop_assert_eq!(&before, &machine, "a refused event changes nothing");
                    prop_assert_eq!(refused, event);
                    prop_assert_eq!(before.clone().poll(), {
                        // An idle machine with a request, or one that waits for the tick and has
                        // been asked urgently, would begin at the next poll.
                        match pending {
                            Action::Idle | Action::Wait(_) => before.clone().poll(),
                            _ => pending,
                        }
                    });
                }
            }
            for request in &asked {
                let done = machine.sequence().is_done(request.cookie);
                prop_assert!(!done || request.served == Served::Waited, "{:?}", request);
            }
        }
        // Requests end: without holdouts, all of them, in a bounded number of steps.
        prop_assert!(finish(&mut machine) <= 2 * 9, "two grace periods of two passes at most");
        prop_assert!(!machine.is_wanted());
        prop_assert!(asked.iter().all(|request| machine.sequence().is_done(request.cookie)));
    }

    /// A thread that waits for a cookie that is not refused waits for two grace periods at most.
    #[test]
    fn a_foreign_cookie_is_refused_or_done_after_one_grace_period(
        policy in policy(),
        start in start(),
        bits: u64,
        near in -12..12_i64,
        is_near: bool,
        busy: bool,
    ) {
        let mut machine = Machine::new(policy, start);
        if busy {
            machine.request(Urgency::Expedited);
            machine.poll();
        }
        let first = machine.sequence().ended();
        let bits = if is_near {
            machine.snapshot().to_bits().wrapping_add_signed(near)
        } else {
            bits
        };
        let cookie = Cookie::from_bits(bits);
        match machine.require(cookie, Urgency::Normal) {
            Ok(()) => {
                finish(&mut machine);
                prop_assert!(machine.sequence().is_done(cookie));
            }
            Err(refused) => {
                prop_assert_eq!(refused, grace::NotGiven);
                prop_assert!(bits & 1 != 0 || !machine.sequence().is_done(cookie));
                finish(&mut machine);
            }
        }
        let ended = machine.sequence().ended().wrapping_sub(first) & (u64::MAX >> 1);
        prop_assert!(ended <= 1 + u64::from(busy));
    }

    #[test]
    fn requests_before_a_fence_share_a_grace_period(start in start(), count in 1..20usize) {
        let mut machine = Machine::new(POLICY, start);
        let cookies: Vec<_> = (0..count).map(|_| machine.request(Urgency::Normal)).collect();
        prop_assert!(cookies.windows(2).all(|pair| pair[0] == pair[1]));
        prop_assert_eq!(machine.poll(), Action::Fence);
        let late = machine.request(Urgency::Normal);
        prop_assert!(late != cookies[0], "the fence may have begun: the next one serves");
    }

    #[test]
    fn numbers_are_announced_in_turn_and_twice_once_they_come_round(
        start in start(),
        grace_periods in 1..20usize,
    ) {
        let mut machine = Machine::new(POLICY, start);
        let bits = start.number_bits.clamp(1, 32);
        let mask = u32::MAX >> (32 - bits);
        let mut last = machine.number().0;
        let mut announced = 0u64;
        for _ in 0..grace_periods {
            machine.request(Urgency::Normal);
            let mut passes = 0;
            while let Some(event) = answer(machine.poll(), 0, false) {
                if let Action::Announce(number) = machine.poll() {
                    prop_assert_eq!(number.0, last.wrapping_add(1) & mask);
                    last = number.0;
                    passes += 1;
                }
                machine.observe(event).expect("the answer fits");
            }
            // A number is fresh until as many have been announced as there are others.
            let expected = if announced >= u64::from(mask) { 2 } else { 1 };
            prop_assert_eq!(passes, expected);
            announced += passes;
        }
    }
}

/// Up to the first look that finds holdouts; then perhaps another request.
fn with_holdouts(urgency: Option<Urgency>) -> Machine<Adaptive> {
    let mut machine = Machine::new(POLICY, Start::ZERO);
    looks_once(&mut machine);
    urgency.into_iter().for_each(|urgency| _ = machine.request(urgency));
    machine
}

fn looks_once(machine: &mut Machine<Adaptive>) {
    machine.request(Urgency::Normal);
    for event in [Event::Fenced, Event::Announced, Event::Scanned { holdouts: 1 }] {
        machine.poll();
        machine.observe(event).expect("the answer fits");
    }
}

fn looks_before_sleep(machine: &mut Machine<Adaptive>) -> u32 {
    let mut looks = 0;
    while machine.poll() == Action::Wait(Hint::Again) {
        looks += 1;
        machine.observe(Event::Woken).expect("the answer fits");
        machine.observe(Event::Scanned { holdouts: 1 }).expect("the answer fits");
    }
    assert_eq!(machine.poll(), Action::Wait(Hint::Sleep));
    looks
}

#[test]
fn whoever_is_in_a_hurry_is_looked_for_longer() {
    assert_eq!(looks_before_sleep(&mut with_holdouts(None)), POLICY.looks_max - 1);
    let mut hurried = with_holdouts(Some(Urgency::Expedited));
    assert_eq!(looks_before_sleep(&mut hurried), POLICY.looks_max_expedited - 1);
    assert_eq!(looks_before_sleep(&mut with_holdouts(Some(Urgency::Normal))), POLICY.looks_max - 1);
}

#[test]
fn hurry_ends_with_the_grace_period_that_was_wanted() {
    let mut machine = Machine::new(POLICY, Start::ZERO);
    machine.request(Urgency::Expedited);
    finish(&mut machine);
    looks_once(&mut machine);
    assert_eq!(looks_before_sleep(&mut machine), POLICY.looks_max - 1);
}

/// How many scans after the first one precede a sleep; the grace period ends after it, or before
/// it if `leaves_after` scans.
fn scans_before_sleep(machine: &mut Machine<Adaptive>, leaves_after: Option<u32>) -> u32 {
    let cookie = machine.request(Urgency::Normal);
    let mut scans = 0;
    loop {
        let event = match machine.poll() {
            Action::Idle => break,
            Action::Fence => Event::Fenced,
            Action::Announce(_) => Event::Announced,
            Action::Wait(Hint::Sleep) => {
                assert_eq!(leaves_after, None, "the reader leaves earlier");
                machine.observe(Event::Woken).expect("the answer fits");
                Event::Scanned { holdouts: 0 }
            }
            Action::Wait(_) => Event::Woken,
            Action::Scan(_) => {
                scans += 1;
                Event::Scanned { holdouts: usize::from(Some(scans) != leaves_after) }
            }
            Action::Complete(_) => Event::Completed,
        };
        machine.observe(event).expect("the answer fits");
    }
    assert!(machine.sequence().is_done(cookie));
    scans
}

/// A driver used to make all its scans in each grace period, even if its reader waited for the same
/// CPU.
#[test]
fn a_driver_whose_scans_were_in_vain_sleeps_sooner() {
    let looks_max = 200;
    let mut machine = Machine::new(Adaptive { looks_max, ..POLICY }, Start::ZERO);
    let in_vain: Vec<_> = (0..200).map(|_| scans_before_sleep(&mut machine, None)).collect();
    assert_eq!(in_vain[..4], [looks_max; 4], "it may be chance");
    let spared = in_vain.iter().filter(|scans| **scans == looks_max / 8).count();
    let probes = in_vain.iter().filter(|scans| **scans == looks_max).count();
    assert_eq!((spared, probes), (200 - 16, 16), "four in 64 find out whether that is still so");
    // The last was spared some; and now the reader leaves while the driver scans.
    assert_eq!(scans_before_sleep(&mut machine, Some(10)), 10);
    assert_eq!(scans_before_sleep(&mut machine, None), looks_max);
}

#[test]
fn an_abandoned_grace_period_begins_again_at_its_fence() {
    let mut machine = with_holdouts(None);
    machine.observe(Event::Abandoned).expect("fits every step");
    assert_eq!(machine.poll(), Action::Fence);
    assert!(machine.sequence().in_progress());
}

/// What a fresh machine does after one request of this urgency: whether it begins at once, and what
/// it does after each look that finds holdouts.
fn course(policy: AnyPolicy, urgency: Urgency) -> (bool, [Hint; 6]) {
    let mut machine = Machine::new(policy, Start::ZERO);
    machine.request(urgency);
    let at_once = machine.poll() == Action::Fence;
    if !at_once {
        assert_eq!(machine.poll(), Action::Wait(Hint::Tick));
        assert!(!machine.sequence().in_progress());
        machine.observe(Event::Woken).expect("the answer fits");
    }
    machine.observe(Event::Fenced).expect("the answer fits");
    machine.observe(Event::Announced).expect("the answer fits");
    let hints = std::array::from_fn(|_| {
        machine.observe(Event::Scanned { holdouts: 1 }).expect("the answer fits");
        let Action::Wait(hint) = machine.poll() else { panic!("holdouts remain") };
        machine.observe(Event::Woken).expect("the answer fits");
        hint
    });
    (at_once, hints)
}

#[test]
fn each_policy_has_its_own_patience() {
    use Hint::{Again, Sleep, Tick as AtTick};
    use Urgency::{Background, Expedited, Normal};
    let adaptive = AnyPolicy::Adaptive(POLICY);
    assert_eq!(course(adaptive, Background), (false, [AtTick; 6]));
    assert_eq!(course(adaptive, Normal), (true, [Again, Sleep, Sleep, Sleep, Sleep, Sleep]));
    assert_eq!(course(adaptive, Expedited), (true, [Again, Again, Again, Again, Sleep, Sleep]));
    let poll = AnyPolicy::Poll(Poll { looks_max: 3 });
    let token = AnyPolicy::Token(Token { looks_max: 2 });
    for urgency in [Background, Normal, Expedited] {
        assert_eq!(course(poll, urgency), (true, [Again, Again, Sleep, Sleep, Sleep, Sleep]));
        assert_eq!(course(AnyPolicy::Tick(Tick), urgency), (false, [AtTick; 6]));
    }
    assert_eq!(course(token, Background), (true, [AtTick; 6]));
    assert_eq!(course(token, Normal), (true, [Again, AtTick, AtTick, AtTick, AtTick, AtTick]));
}

#[test]
fn an_urgent_request_ends_the_wait_for_the_tick() {
    let mut machine = Machine::new(POLICY, Start::ZERO);
    let background = machine.request(Urgency::Background);
    assert_eq!(machine.poll(), Action::Wait(Hint::Tick));
    assert_eq!(machine.request(Urgency::Normal), background, "they share one grace period");
    assert_eq!(machine.poll(), Action::Fence);
}
