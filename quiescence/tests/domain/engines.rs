//! The same promises under every engine, and what each engine has of its own.

use crate::common::*;
use quiescence::tuning::Engine;

fn domain(engine: Engine) -> Domain {
    Domain::builder().engine(engine).build()
}

/// An ordinary reader and a QSBR one hold a grace period up, whichever engine there is, and no
/// longer than they must.
#[test]
fn a_grace_period_waits_for_readers_of_both_kinds() {
    for engine in Engine::ALL {
        let domain = domain(engine);
        let (began, passes) = (Barrier::new(2), AtomicBool::new(false));
        let qsbr = |_| {
            let (mut reader, passes) = (domain.qsbr(), &passes);
            began.wait();
            move || {
                if passes.load(Acquire) {
                    reader.quiescent_state();
                }
                thread::yield_now();
            }
        };
        beside(1, qsbr, || {
            began.wait();
            beside_a_section(&domain, |leave| {
                let cookie = domain.start_poll();
                let is_over = || (0..rounds(1_000, 10)).any(|_| domain.poll(cookie));
                assert!(!is_over(), "{engine}: both readers are inside");
                leave();
                assert!(!is_over(), "{engine}: the QSBR reader is inside");
                passes.store(true, Release);
                domain.wait(cookie);
            });
        });
        assert!(domain.statistics().grace_periods >= 1);
    }
}

/// No thread waits and no thread polls: the worker sees to it, whatever goes by the tick.
#[test]
fn callbacks_run_without_anybody_waiting() {
    const MANY: usize = if cfg!(miri) { 30 } else { 1_000 };
    for engine in Engine::ALL {
        let domain = domain(engine);
        let run = Arc::new(AtomicUsize::new(0));
        (0..MANY).for_each(|_| domain.call(counting(&run)).unwrap());
        until(|| run.load(Acquire) >= MANY);
        let statistics = domain.statistics();
        assert_eq!(statistics.callbacks_queued, MANY as u64);
        assert!(statistics.grace_periods < MANY as u64, "{engine}: callbacks share grace periods");
    }
}

/// A cookie that was asked for comes true under engines that go by the tick, with no thread
/// driving.
#[test]
fn a_started_grace_period_ends_by_itself_on_the_tick() {
    for engine in [Engine::Tick, Engine::Token, Engine::Poll] {
        let domain = domain(engine);
        let _cookie = domain.start_poll();
        until(|| domain.statistics().grace_periods != 0);
    }
}

/// Values replaced beside QSBR readers that come and go, more than a chain of the relay has places
/// for.
#[test]
fn nothing_is_freed_under_qsbr_readers_that_come_and_go() {
    const READERS: usize = 40;
    const UPDATES: u64 = if cfg!(miri) { 8 } else { 300 };
    for engine in [Engine::Adaptive, Engine::Poll, Engine::Token] {
        let domain = domain(engine);
        let value = Rcu::new_in([0u64; 8], domain.clone());
        let read = |number: usize| {
            let (domain, value, mut turns) = (&domain, &value, number);
            move || {
                let mut reader = domain.qsbr();
                for _ in 0..50 {
                    turns += 1;
                    let guard = reader.read();
                    let seen = value.load(&guard);
                    assert!(seen.iter().all(|word| *word == seen[0]), "{engine}: torn");
                    drop(guard);
                    reader.quiescent_state();
                    if turns.is_multiple_of(7) {
                        reader.while_offline(thread::yield_now);
                    }
                }
                drop(reader);
                if number.is_multiple_of(3) {
                    // One in three is away for longer, and comes back in whichever slot is free.
                    thread::yield_now();
                }
            }
        };
        beside(READERS, read, || {
            for update in 1..=UPDATES {
                // What is freed is first overwritten: a reader that still sees it finds it torn.
                let mut old = value.swap([update; 8]).into_box();
                old[..4].fill(u64::MAX);
            }
        });
        assert_eq!(value.load(&domain.read())[0], UPDATES);
    }
}

/// A QSBR reader that is offline for good, one that leaves in the middle of a grace period, and one
/// that only goes offline and comes back, hold up no thread that copies from them.
#[test]
fn a_relay_passes_over_whoever_is_away() {
    const READERS: usize = rounds(20, 4);
    let domain = domain(Engine::Token);
    let (stop, registered) = (AtomicBool::new(false), Barrier::new(READERS + 1));
    threads(READERS + 1, |number| {
        if number == READERS {
            registered.wait();
            (0..20).for_each(|_| domain.synchronize());
            return stop.store(true, Relaxed);
        }
        let mut reader = domain.qsbr();
        registered.wait();
        match number % 4 {
            0 => {
                // Some have handed a number on by then, and some have not.
                (0..number * 50).for_each(|_| reader.quiescent_state());
                let away = reader.offline();
                until(|| stop.load(Relaxed));
                drop(away);
            }
            1 => drop(reader),
            kind => {
                while !stop.load(Relaxed) {
                    if kind == 2 {
                        reader.while_offline(|| ())
                    } else {
                        reader.quiescent_state()
                    }
                    thread::yield_now(); // online: no driver meets it offline but by chance
                }
            }
        }
    });
    assert!(domain.statistics().grace_periods >= 20);
    domain.synchronize();
}

#[test]
fn names_go_there_and_back() {
    for engine in Engine::ALL {
        assert_eq!(engine.to_string().parse(), Ok(engine));
    }
    let error = "Adaptive".parse::<Engine>().expect_err("names are in small letters");
    assert!(error.to_string().contains("adaptive"), "{error}");
}
