//! Cookies that no grace period of their domain will reach soon.

use crate::common::*;

use quiescence::{Cookie, tag::DomainTag};

/// What no domain of a test reaches, also where they have begun to count elsewhere.
const FAR: u64 = 1 << 40;

/// A number from elsewhere is refused, and everything continues: the domain, others, a fork, the
/// end of the process.
fn is_refused<K: DomainTag>(domain: &Domain<K>, wait: impl FnOnce(Cookie) + Send) {
    // On a thread of its own: without the refusal it never comes back.
    let said = elsewhere(|| panic_of(|| wait(domain.cookie_from_bits(FAR))));
    assert!(said.contains("has not given out such a cookie"));
    assert!(domain.try_cookie_from_bits(FAR).is_none());
    assert!(panic_of(|| _ = domain.poll(domain.cookie_from_bits(FAR))).contains("0x10000000000: "));
    domain.synchronize();
    assert!(domain.statistics().grace_periods < FAR);
    let (sender, called) = mpsc::channel();
    for domain in [Domain::new(), Domain::new()] {
        let sender = sender.clone();
        domain.call_hurry(move || sender.send(()).unwrap()).unwrap();
        called.recv().expect("the callback of another domain");
    }
    #[cfg(unix)]
    in_child(|| domain.synchronize());
}

#[test]
fn a_number_from_elsewhere_is_refused_and_stops_nothing() {
    let Some(role) = role() else {
        return ["global", "private", "srcu", "async"]
            .iter()
            .for_each(|role| passes_again(this_test!(), role, &[]));
    };
    let srcu = Arc::new(Srcu::new());
    match role.as_str() {
        "global" => is_refused(&Domain::global(), |cookie| Domain::global().wait(cookie)),
        "private" => {
            let domain = Domain::new();
            is_refused(&domain, |cookie| domain.wait(cookie));
        }
        "srcu" => is_refused(&srcu.domain(), |cookie| srcu.wait(cookie)),
        "async" => is_refused(&srcu.domain(), |cookie| {
            let mut future = std::pin::pin!(srcu.wait_async(cookie));
            while future.as_mut().poll(&mut no_context()).is_pending() {}
        }),
        _ => unreachable!("a role of this test"),
    }
}

/// As numbers go by, whatever the domain gives is its own, and one step further is not: idle, and
/// while a grace period is in progress.
fn gives_its_own<K: DomainTag>(domain: &Domain<K>) {
    for bits in [domain.cookie().to_bits(), domain.start_poll().to_bits()] {
        let cookie = domain.try_cookie_from_bits(bits).expect("its own");
        assert_eq!(cookie.to_bits(), bits);
        assert!(domain.try_cookie_from_bits(domain.cookie().to_bits() + 2).is_none(), "too far");
        assert!(domain.poll(cookie) || domain.try_cookie_from_bits(bits + 1).is_none(), "odd");
    }
}

#[test]
fn what_a_domain_gives_it_takes_back() {
    let domain = Domain::new();
    gives_its_own(&domain);
    beside_a_section(&domain, |leave| {
        gives_its_own(&domain);
        let cookie = domain.start_poll();
        gives_its_own(&domain);
        leave();
        domain.wait(domain.cookie_from_bits(cookie.to_bits()));
    });
    gives_its_own(&domain);
    let srcu = Srcu::new();
    gives_its_own(&srcu.domain());
    let guard = srcu.read();
    let cookie = srcu.start_poll();
    gives_its_own(&srcu.domain());
    drop(guard);
    srcu.wait(srcu.domain().cookie_from_bits(cookie.to_bits()));
    gives_its_own(&srcu.domain());
}

/// Before the counter wraps and after it.
#[test]
fn a_number_from_before_the_wrap_is_the_domains_own() {
    let last = quiescence_start((u64::MAX >> 1) - 1);
    let domain = Domain::builder().starting_at(last).build();
    let before = domain.start_poll().to_bits();
    (0..5).for_each(|_| domain.synchronize());
    assert!(domain.cookie().to_bits() < before, "it has wrapped");
    assert!(domain.poll(domain.cookie_from_bits(before)));
    assert!(domain.try_cookie_from_bits(FAR).is_none());
}

fn quiescence_start(ended: u64) -> grace::Start {
    grace::Start { sequence: grace::Sequence::after(ended), ..grace::Start::ZERO }
}
