//! Statistics: what is counted, when, and what is not.

use crate::common::*;
use quiescence::report::{Latency, Statistics};

#[test]
fn grace_periods_are_counted_and_timed_if_they_had_to_look() {
    let domain = Domain::new();
    domain.synchronize();
    let Statistics { grace_periods, latency, .. } = domain.statistics();
    assert_eq!((grace_periods, latency.count()), (1, 0), "nobody to look for");
    // Beside a thread that is registered, in no section.
    while_held(
        || domain.reader(),
        |_| {
            domain.synchronize();
            assert_eq!(domain.statistics().grace_periods_expedited, 0);
            domain.synchronize_expedited();
        },
    );
    let Statistics { grace_periods, grace_periods_expedited, latency, .. } = domain.statistics();
    assert_eq!((grace_periods, grace_periods_expedited, latency.count()), (3, 1, 2));
    let (first, last) = (latency.quantile(0.0).unwrap(), latency.quantile(1.0).unwrap());
    assert!(first.start <= last.start && last.start > 0, "{latency:?}");
    domain.synchronize();
    assert_eq!(domain.statistics().latency.since(&latency), Latency::default());
}

#[test]
fn grace_periods_of_qsbr_readers_are_timed_from_their_first_wait() {
    let domain = Domain::new();
    let mut reader = domain.qsbr();
    reader.while_offline(|| {
        let online = || {
            let mut other = domain.qsbr();
            OnDrop(move || other.quiescent_state())
        };
        while_held(online, |leave| {
            let cookie = domain.start_poll();
            assert!(!domain.poll(cookie));
            leave();
            domain.wait(cookie);
            assert_eq!(domain.statistics().latency.count(), 1);
        });
    });
    let away = reader.offline();
    domain.synchronize();
    let Statistics { grace_periods, heavy_fences, latency, .. } = domain.statistics();
    assert_eq!((grace_periods, latency.count()), (2, 1), "the second had to wait for nobody");
    assert!(heavy_fences <= 1, "to sleep, perhaps");
    drop(away);
}

/// A thread that waits in a hurry is served in a hurry, even if others have begun before it.
#[test]
fn a_grace_period_that_becomes_urgent_is_expedited() {
    let domain = Domain::new();
    let _busy = occupy_the_worker(); // which would drive the first one, and perhaps sleep
    let update = || {
        let cookie = domain.start_poll();
        assert!(!domain.poll(cookie));
        domain.synchronize_expedited();
        assert!(domain.poll(cookie));
    };
    beside_a_sleeper(&domain, update, || ());
    let Statistics { grace_periods, grace_periods_expedited, .. } = domain.statistics();
    assert_eq!((grace_periods, grace_periods_expedited), (2, 2));
}

#[test]
fn what_waits_is_counted_in_objects_and_bytes() {
    /// Says itself how much it owns.
    struct Owner;

    impl quiescence::Retire for Owner {
        fn bytes(&self) -> usize {
            4_096
        }
    }

    let domain = Domain::new();
    let guard = domain.read();
    domain.retire(Box::new([0u8; 64])).unwrap();
    domain.retire(Box::new([0u64; 100])).unwrap();
    let statistics = domain.statistics();
    assert_eq!((statistics.callbacks_waiting(), statistics.callbacks_run), (2, 0));
    assert_eq!(statistics.bytes_waiting, 864 + 2 * 8, "with a word of the library's each");
    domain.retire(Owner).unwrap();
    let grown = domain.statistics().bytes_waiting - statistics.bytes_waiting;
    assert_eq!(grown, 4_096 + 2 * 8, "what it says, and two words");
    drop(guard);
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((statistics.callbacks_queued, statistics.callbacks_run), (3, 3));
    assert_eq!((statistics.callbacks_waiting(), statistics.bytes_waiting), (0, 0));
    assert!((1..=2).contains(&statistics.batches), "{}", statistics.batches);
}

#[test]
fn who_comes_to_the_limit_is_counted() {
    let domain = Domain::new();
    tune(&domain, |tuning| (tuning.objects_max, tuning.lazy) = (2, Duration::MAX));
    for number in 0..2 {
        domain.retire(Box::new(number)).unwrap();
    }
    assert!(domain.try_retire(Box::new(2)).is_err());
    let statistics = domain.statistics();
    assert_eq!((statistics.limit_waits, statistics.limit_refusals), (0, 1));
    domain.retire(Box::new(3)).unwrap();
    let statistics = domain.statistics();
    assert_eq!((statistics.limit_waits, statistics.limit_refusals), (1, 1));
}

/// The worker's time goes by what it spends it on.
#[test]
fn the_worker_is_billed_for_callbacks_apart() {
    let domain = Domain::new();
    let over = Arc::new(AtomicBool::new(false));
    let tell = over.clone();
    domain
        .call(move || {
            // Work, until it shows.
            let mut sum = 0u64;
            while std::hint::black_box(sum) < if cfg!(miri) { 1_000 } else { 1_000_000 } {
                sum += 1;
            }
            tell.store(true, Release);
        })
        .unwrap();
    until(|| over.load(Acquire));
    // Billed when its turn is over.
    until(|| domain.statistics().worker_callbacks_ns != 0);
    assert_eq!(domain.statistics().callbacks_run, 1);
}
