//! At the limit of a sleepable domain nothing is refused, as the caller's sections are not known
//! there. But some updates were, in a section of another domain, in which the thread had gone over
//! the limit before.

use crate::common::*;
use quiescence::collections::{HashMap, IdMap, List};
use quiescence::tag::Sleepable;

/// Updates more often than there is room, beside a section that lasts, in one of the global domain.
fn is_never_refused(make: impl FnOnce(Domain<Sleepable>) -> Box<dyn Fn(u64)>) {
    let srcu = Srcu::new();
    set_limit(&srcu.domain(), 2, u64::MAX);
    let update = make(srcu.domain());
    let (reader, section) = (srcu.read(), quiescence::read());
    (0..6).for_each(update);
    assert_eq!(srcu.domain().statistics().callbacks_waiting(), 6);
    drop((reader, section));
    srcu.barrier();
}

#[test]
fn an_update_of_a_value_was_refused() {
    is_never_refused(|domain| {
        let value = Rcu::new_in(0, domain);
        Box::new(move |by| value.update(|value| value + by))
    });
}

#[test]
fn a_removal_from_a_list_was_refused() {
    is_never_refused(|domain| {
        let list = List::new_in(domain);
        Box::new(move |number| {
            list.push_back(number);
            list.clear();
        })
    });
}

/// These were not.
#[test]
fn a_removal_from_a_map_is_not_refused() {
    is_never_refused(|domain| {
        let map = HashMap::new_in(domain);
        Box::new(move |number| {
            map.insert(number, number);
            map.remove(&number);
        })
    });
    is_never_refused(|domain| {
        let map = IdMap::new_in(domain);
        Box::new(move |number| {
            map.insert(number);
            map.clear();
        })
    });
}

/// As in every domain: the thread can wait for nothing there, and has the object or closure back.
#[test]
fn what_is_retired_or_called_goes_over_the_limit_once() {
    let srcu = Srcu::new();
    let domain = srcu.domain();
    set_limit(&domain, 2, u64::MAX);
    let (reader, section) = (srcu.read(), quiescence::read());
    let retired = [0, 1, 2, 3].map(|number| domain.retire(Box::new(number)).is_ok());
    assert_eq!(retired, [true, true, true, false]);
    assert!(domain.call(|| ()).is_err());
    drop((reader, section));
    srcu.barrier();
}

/// The sections of other sleepable domains are not known either: as if there were none, the thread
/// waits for a tick.
#[test]
fn a_section_of_another_sleepable_domain_refuses_nothing() {
    let (srcu, other) = (Srcu::new(), Srcu::new());
    let domain = srcu.domain();
    set_limit(&domain, 1, u64::MAX);
    let (reader, section) = (srcu.read(), other.read());
    let retired = [0, 1, 2].map(|number| domain.retire(Box::new(number)).is_ok());
    assert_eq!(retired, [true; 3]);
    drop((reader, section));
    srcu.barrier();
}
