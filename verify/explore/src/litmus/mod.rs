//! Litmus tests: outcomes that grace periods and sections forbid, and outcomes that they allow.
//!
//! Accesses are relaxed, so that nothing but the grace periods and sections can order them.
//! [`forbidden`] outcomes must never be reached; [`allowed`] ones must be, or the models would be
//! too strong to show anything. Each is asked of every kind of [`Reader`] that the library has.
//! Most are [`Cycle`]s, of which [`cycle`] makes every small one.

pub mod cycle;
pub mod section;

pub use cycle::{Cycle, Edge, Kind};
pub use section::{Reader, Shape};

use crate::scenario::Op::{Free, Get, Poll, Read, ReadAgain, Request, Store, Wait};
use crate::scenario::{Outcome, Scenario, Thread};
use section::set;

const X: u8 = 0;
const Y: u8 = 1;

/// Outcomes that must never be reached, small enough for the tests.
pub fn forbidden() -> Vec<Scenario> {
    let mut all = Vec::new();
    for reader in Reader::ALL {
        all.push(sync_free(reader));
        all.extend(sync_read(reader));
        all.extend(Shape::ALL.map(|shape| store_buffering(reader, shape)));
        all.push(polled(reader));
        all.push(two_grace_periods(reader));
    }
    all.push(named("litmus-gp-gp", Cycle::unseen(&[Kind::GracePeriod; 2]), Reader::Ordinary));
    all
}

/// Two grace periods against two sections, in both orders: forbidden, and some seconds each.
pub fn forbidden_two_two() -> Vec<Scenario> {
    use Kind::{GracePeriod, Section};
    let turns = [GracePeriod, Section, GracePeriod, Section];
    let pairs = [GracePeriod, GracePeriod, Section, Section];
    vec![
        named("litmus-two-two", Cycle::unseen(&turns), Reader::Ordinary),
        named("litmus-two-two-pairs", Cycle::unseen(&pairs), Reader::Ordinary),
    ]
}

/// Bigger ones, for the command: every cycle of three, for every kind of reader, in every shape
/// that the rule forbids it in; and two grace periods against two sections of other kinds of
/// reader.
pub fn forbidden_exhaustive() -> Vec<Scenario> {
    use Kind::{GracePeriod, Section};
    let turns = Cycle::unseen(&[GracePeriod, Section, GracePeriod, Section]);
    let kinds = [Reader::Portable, Reader::Qsbr, Reader::QsbrStates, Reader::Late];
    let mut all = forbidden_two_two();
    all.extend(
        kinds.map(|reader| {
            named(&format!("litmus-two-two-{}", reader.name()), turns.clone(), reader)
        }),
    );
    for cycle in Cycle::all(3).iter().filter(|cycle| cycle.is_forbidden()) {
        for reader in Reader::ALL {
            all.extend(Shape::ALL.map(|shape| cycle.scenario(reader, shape)));
        }
    }
    all
}

/// Outcomes that are not promised never to happen, and do.
pub fn allowed() -> Vec<Scenario> {
    use Kind::{GracePeriod, Section};
    let mut all = Vec::new();
    for reader in Reader::ALL {
        let of = |test: &str| format!("litmus-{test}-{}", reader.name());
        all.push(named(&of("sections-only"), Cycle::unseen(&[Section; 2]), reader));
        // A reader that comes and goes joins and leaves this domain; it has no other one.
        if !reader.is_late() {
            all.extend([Shape::InOrder, Shape::Swapped].map(|shape| other_domain(reader, shape)));
        }
    }
    for reader in [Reader::Ordinary, Reader::Portable, Reader::Qsbr, Reader::QsbrStates] {
        let one_two = Cycle::unseen(&[GracePeriod, Section, Section]);
        let name = format!("litmus-one-two-{}", reader.name());
        all.push(named(&name, one_two, reader));
    }
    all.push(nothing());
    // Without a fence in lock the section orders nothing outside of it either.
    let rest = [Shape::Before, Shape::After, Shape::Empty];
    all.extend(rest.map(|shape| other_domain(Reader::Ordinary, shape)));
    all
}

fn named(name: &str, cycle: Cycle, reader: Reader) -> Scenario {
    Scenario { name: name.to_owned().into(), ..cycle.scenario(reader, Shape::InOrder) }
}

fn saw(thread: usize, variable: u8, value: u8) -> Outcome {
    Outcome { thread, variable, value }
}

/// RCU+sync+free: what a section found is not freed before it ends. With objects, as all other
/// scenarios: freeing is the store, and the read of what was freed is the outcome.
fn sync_free(reader: Reader) -> Scenario {
    let threads = vec![
        reader.section(Shape::InOrder, Read, ReadAgain),
        Thread::other("updater", &[Store(1), Request, Wait, Free]),
    ];
    let name = format!("litmus-sync-free-{}", reader.name());
    reader.scenario(name, threads)
}

/// RCU+sync+read: a section that sees what came after a grace period sees what came before it.
fn sync_read(reader: Reader) -> [Scenario; 2] {
    let links = vec![(Kind::Section, Edge::FromRead), (Kind::GracePeriod, Edge::ReadsFrom)];
    let cycle = Cycle { links };
    [Shape::InOrder, Shape::Swapped].map(|shape| {
        let name = format!("litmus-sync-read-{}-{}", shape.name(), reader.name());
        Scenario { name: name.into(), ..cycle.scenario(reader, shape) }
    })
}

/// Store buffering between a grace period and a section.
fn store_buffering(reader: Reader, shape: Shape) -> Scenario {
    let cycle = Cycle::unseen(&[Kind::Section, Kind::GracePeriod]);
    let name = format!("litmus-sb-{}-{}", shape.name(), reader.name());
    Scenario { name: name.into(), ..cycle.scenario(reader, shape) }
}

/// The same with a cookie that is polled, once, while somebody else drives.
fn polled(reader: Reader) -> Scenario {
    let threads = vec![
        reader.section(Shape::Swapped, set(X), Get(Y)),
        Thread::other("updater", &[set(Y), Request, Poll, Get(X)]),
        Thread::other("driver", &[Request, Wait]),
    ];
    let name = format!("litmus-sb-polled-{}", reader.name());
    let outcome = vec![saw(0, Y, 0), saw(1, X, 0)];
    Scenario { outcome, ..reader.scenario(name, threads) }
}

/// Store buffering between two grace periods, while such a reader is registered.
fn two_grace_periods(reader: Reader) -> Scenario {
    let cycle = Cycle::unseen(&[Kind::GracePeriod; 2]);
    let mut scenario = named(&format!("litmus-gp-gp-{}", reader.name()), cycle, reader);
    scenario.threads.push(reader.bystander());
    scenario
}

/// Store buffering without any grace period or section: what memory does by itself.
fn nothing() -> Scenario {
    let thread = |name, mine, other| Thread::other(name, &[set(mine), Get(other)]);
    let outcome = vec![saw(0, Y, 0), saw(1, X, 0)];
    let threads = vec![thread("a", X, Y), thread("b", Y, X)];
    Scenario { outcome, ..Scenario::new("litmus-sb-nothing", threads) }
}

/// Store buffering between a grace period and a section of another domain.
fn other_domain(reader: Reader, shape: Shape) -> Scenario {
    let mut scenario = store_buffering(reader, shape);
    scenario.threads[0].liburcu = true;
    let name = format!("litmus-other-domain-{}-{}", shape.name(), reader.name());
    Scenario { name: name.into(), ..scenario }
}
