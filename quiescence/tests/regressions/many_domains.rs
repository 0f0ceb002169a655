//! A domain for each object: making, finding and dropping each takes constant time.
//!
//! That a look-up takes few steps is checked by the tests of the tables themselves (`by_address`,
//! `local/table`, `worker/tasks`); here is what can be seen from outside: memory that comes back,
//! and sections that are found still.

#![cfg_attr(not(target_os = "linux"), allow(unused_imports))]

use crate::common::*;
/// Whether the calling thread is seen to be in a section: at the limit of another domain its second
/// object is refused then, where it would wait otherwise.
fn is_in_a_section() -> bool {
    let full = domain_with_limit(1, 1 << 20);
    (0..3).any(|number| full.retire(Box::new(number)).is_err())
}

/// A thread looks at those domains only in which it may be in a section. One that was left out is
/// looked at again when it is read in again, in whatever way.
#[test]
fn sections_of_one_among_many_domains_are_found() {
    const DOMAINS: usize = rounds(100, 12);
    let domains: Vec<_> = (0..DOMAINS).map(|_| Domain::new()).collect();
    domains.iter().for_each(|domain| drop(domain.read()));
    assert!(!is_in_a_section());
    for domain in &domains {
        let guard = domain.read();
        assert!(is_in_a_section(), "a second section of an implicit reader");
        drop(guard);
    }
    let reader = domains[DOMAINS / 2].reader();
    assert!(!is_in_a_section());
    let guard = reader.read();
    assert!(is_in_a_section(), "a section of a handle, after a look");
    drop(guard);
    drop(reader);
    let guard = quiescence::read();
    assert!(is_in_a_section(), "the first section in the global domain");
    drop(guard);
    assert!(!is_in_a_section());
    let guard = quiescence::read();
    assert!(is_in_a_section(), "one that asks no table");
    drop(guard);
    assert!(!is_in_a_section());
}

/// Bytes that the program has from its allocator.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn in_use() -> usize {
    // SAFETY: no precondition.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// What a domain had in the tables of threads stayed there, 2 to 7 KB each, until the thread used a
/// new domain.
#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn memory_comes_back_when_domains_end() {
    const DOMAINS: usize = 2_000;
    in_its_own_process!();
    let made = || -> Vec<Domain> { (0..DOMAINS).map(|_| Domain::new()).collect() };
    let used = |domains: &[Domain]| domains.iter().for_each(|domain| drop(domain.read()));
    let one = Domain::new();
    drop(one.read());
    // Whatever is allocated once is by now.
    let domains = made();
    used(&domains);
    drop(domains);

    let before = in_use();
    let domains = made();
    used(&domains);
    assert!(in_use() - before > DOMAINS * 1_000, "there is something to give back");
    drop(domains);
    let each = in_use().saturating_sub(before) / DOMAINS;
    assert!(each <= 32, "{each} bytes a domain that this thread has ended");

    // In the table of another thread, which continues with a domain that it knows.
    let (work, of_main) = mpsc::channel::<Vec<Domain>>();
    let (done, is_done) = mpsc::channel();
    let other = thread::spawn(move || {
        for domains in of_main {
            used(&domains);
            drop(one.read());
            drop(domains);
            done.send(()).unwrap();
        }
    });
    let give = |domains| {
        work.send(domains).unwrap();
        is_done.recv().unwrap();
    };
    give(made());
    let before = in_use();
    let domains = made();
    give(domains.clone());
    drop(domains);
    give(Vec::new());
    let each = in_use().saturating_sub(before) / DOMAINS;
    assert!(each <= 32, "{each} bytes a domain that another thread had read in");
    drop(work);
    other.join().unwrap();
}

/// Domains come and go on several threads while others read and update in theirs: tables lose
/// nothing.
#[test]
fn domains_that_come_and_go_beside_others_disturb_none() {
    const DOMAINS: usize = rounds(50, 8);
    const ROUNDS: u64 = rounds(40, 4) as u64;
    threads(3, |_| {
        let kept: Vec<_> = (0..DOMAINS).map(|_| Srcu::new()).collect();
        let values: Vec<_> = kept.iter().map(|srcu| Rcu::new_in(0, srcu.domain())).collect();
        for round in 1..ROUNDS {
            let passing: Vec<_> = (0..DOMAINS).map(|_| Domain::new()).collect();
            for (number, domain) in passing.iter().enumerate() {
                let guard = domain.read();
                domain.retire(Box::new(number)).unwrap();
                drop(guard);
                values[number].store(round);
                assert_eq!(*values[number].load(&kept[number].read()), round);
            }
            passing.iter().step_by(7).for_each(Domain::barrier);
        }
        kept.iter().for_each(|srcu| {
            srcu.barrier();
            let statistics = srcu.statistics();
            let all = (ROUNDS - 1, ROUNDS - 1);
            assert_eq!((statistics.callbacks_queued, statistics.callbacks_run), all);
        });
    });
}
