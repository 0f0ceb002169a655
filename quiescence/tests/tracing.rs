//! The feature `tracing`: what a subscriber receives, and that it may do as it likes.
#![cfg(feature = "tracing")]

mod common;
#[path = "common/subscriber.rs"]
mod subscriber;

use std::collections::BTreeMap;
use std::fmt;

use common::user_types::BOMB;
use common::*;
use subscriber::Hears;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};

/// An event: its fields by name, the message among them.
type Fields = BTreeMap<&'static str, String>;

struct Visitor(Fields);

impl Visit for Visitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// What hands each event of the library to a function.
fn collector<F>(told: F) -> impl Subscriber
where
    F: Fn(&Level, Fields) + Send + Sync + 'static,
{
    Hears(move |event: &Event<'_>| {
        if event.metadata().target() == "quiescence" {
            let mut visitor = Visitor(Fields::new());
            event.record(&mut visitor);
            told(event.metadata().level(), visitor.0);
        }
    })
}

/// The events while `f` runs on this thread.
fn events(f: impl FnOnce()) -> Vec<(Level, Fields)> {
    let events = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&events);
    let collector =
        collector(move |level: &Level, fields| kept.lock().unwrap().push((*level, fields)));
    tracing::subscriber::with_default(collector, f);
    std::mem::take(&mut events.lock().unwrap())
}

#[test]
fn grace_periods_and_callbacks_are_told_in_order() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.lazy = Duration::MAX); // or the worker's thread is told
    let told = events(|| {
        domain.synchronize();
        domain.retire(Box::new(7)).unwrap();
        domain.barrier();
        domain.synchronize_expedited();
    });
    assert!(told.iter().all(|(level, _)| *level == Level::TRACE), "{told:?}");
    let told: Vec<Fields> = told.into_iter().map(|(_, fields)| fields).collect();
    let names: Vec<&str> = told.iter().map(|fields| fields["message"].as_str()).collect();
    let grace_period = ["grace_period_begin", "grace_period_end"];
    let expected =
        [&grace_period, &["batch"][..], &grace_period, &["callbacks"], &grace_period].concat();
    assert_eq!(names, expected, "{told:?}");
    assert!(told.iter().all(|fields| fields["domain"] == told[0]["domain"]));
    let numbers: Vec<&str> =
        told.iter().filter_map(|fields| Some(fields.get("number")?.as_str())).collect();
    assert_eq!(numbers, ["1", "1", "2", "2", "2", "3", "3"], "{told:?}");
    assert_eq!(told[0]["urgency"], "\"normal\"");
    assert_eq!(told[6]["urgency"], "\"expedited\"");
    assert_eq!((told[2]["callbacks"].as_str(), told[5]["callbacks"].as_str()), ("1", "1"));
}

/// What a subscriber does with the library is not told: it would have no end. And no lock is in its
/// way.
#[test]
fn a_subscriber_may_use_the_library() {
    let domain = Domain::new();
    let inner = domain.clone();
    let heard = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&heard);
    let collector = collector(move |_: &Level, _| {
        count.fetch_add(1, SeqCst);
        inner.synchronize();
        inner.retire(Box::new([0u8; 64])).unwrap();
        inner.barrier();
        drop(inner.read());
    });
    tracing::subscriber::with_default(collector, || domain.synchronize());
    assert_eq!(heard.load(SeqCst), 2, "begin and end of one grace period");
    assert!(domain.statistics().grace_periods >= 5);
}

#[test]
fn a_subscriber_that_panics_stops_nothing() {
    let domain = Domain::new();
    let collector = collector(|_: &Level, _| panic!("on purpose"));
    tracing::subscriber::with_default(collector, || {
        domain.synchronize();
        domain.retire(Box::new(7)).unwrap();
        domain.barrier();
    });
    assert_eq!(events(|| domain.synchronize()).len(), 2, "and the next one is told");
}

/// A program of its own: the worker's subscriber is everybody's.
#[test]
fn a_payload_that_panics_when_it_is_dropped_does_not_end_the_worker() {
    in_its_own_process!();
    let collector = collector(|_: &Level, _| panic_any(BOMB));
    tracing::subscriber::set_global_default(collector).unwrap();
    let first = worker();
    Domain::new().synchronize();
    for _ in 0..3 {
        assert_eq!(worker(), first);
    }
    assert_eq!(Domain::global().statistics().worker_restarts, 0);
}

#[test]
fn at_the_limit_it_is_said_who_waits() {
    let domain = Domain::new();
    tune(&domain, |tuning| (tuning.objects_max, tuning.lazy) = (1, Duration::MAX));
    let told = events(|| {
        domain.retire(Box::new(1)).unwrap();
        assert!(domain.try_retire(Box::new(2)).is_err());
        domain.retire(Box::new(3)).unwrap();
    });
    let limits = told.iter().filter(|(_, fields)| fields["message"] == "limit");
    let waits: Vec<(&Level, &str)> =
        limits.map(|(level, fields)| (level, fields["waits"].as_str())).collect();
    assert_eq!(waits, [(&Level::DEBUG, "false"), (&Level::DEBUG, "true")], "{told:?}");
    assert_eq!(domain.statistics().limit_refusals, 1);
    assert_eq!(domain.statistics().limit_waits, 1);
}

/// A program of its own: the reporter is another thread, so the subscriber is everybody's.
#[test]
fn a_stall_is_told_while_it_lasts() {
    in_its_own_process!();
    let (tell, told) = mpsc::channel();
    let collector = collector(move |level: &Level, fields: Fields| {
        if *level == Level::WARN {
            tell.send(fields).unwrap();
        }
    });
    tracing::subscriber::set_global_default(collector).unwrap();
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.stall_after = Some(Duration::from_millis(1)));
    beside_a_sleeper(
        &domain,
        || domain.synchronize(),
        || {
            let stall = told.recv().unwrap();
            let [message, number, holdouts] =
                ["message", "number", "holdouts"].map(|name| stall[name].as_str());
            assert_eq!((message, number, holdouts), ("stall", "1", "1"));
            assert!(stall["age_ns"].parse::<u64>().unwrap() >= 1_000_000);
        },
    );
}
