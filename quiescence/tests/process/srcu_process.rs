//! Sleepable domains and what is around them: reports of stalls, forks, the end of the process.
#![cfg(target_os = "linux")]

use crate::common::*;

use quiescence::report::StallReport;

/// A domain of this name, and the reports of its stalls.
fn listened_to(domain: &'static Srcu, name: &'static str) -> Receiver<StallReport> {
    tune(domain, |tuning| {
        tuning.stall_after = Some(Duration::from_millis(2));
        tuning.stall_after_expedited = tuning.stall_after;
    });
    crate::reports::of(name)
}

#[test]
fn a_stall_names_the_slots_and_the_oldest_guard() {
    static DOMAIN: Srcu = Srcu::named("tracked");
    let reports = listened_to(&DOMAIN, "tracked");
    let not_listed = DOMAIN.read();
    DOMAIN.track_guards(true);
    let oldest = DOMAIN.read();
    let line = line!() - 1;
    let younger = DOMAIN.read();
    let report = thread::scope(|scope| {
        scope.spawn(|| DOMAIN.synchronize());
        let report = reports.recv().unwrap();
        // Ended elsewhere than they began.
        drop((not_listed, oldest, younger));
        report
    });
    assert_eq!(report.sections, 3);
    let begun: u64 = report.slots.iter().map(|slot| slot.begun).sum();
    let ended: u64 = report.slots.iter().map(|slot| slot.ended).sum();
    assert_eq!(begun - ended, 3, "{:?}", report.slots);
    let guard = report.oldest_guard.expect("two are listed");
    assert_eq!((guard.location.file(), guard.location.line()), (file!(), line));
    assert_eq!(guard.listed, 2);
    assert_eq!(guard.thread_id, Some(thread_id()));
    let said = report.to_string();
    assert!(said.contains("held up by 3 sections"), "{said}");
    assert!(said.contains(&format!("srcu_process.rs:{line}")), "{said}");
    assert!(report.holdouts.is_empty());
    DOMAIN.track_guards(false);
    drop(DOMAIN.read());
    DOMAIN.synchronize();
}

#[test]
fn without_tracking_a_stall_says_how_to_have_it() {
    static DOMAIN: Srcu = Srcu::named("not tracked");
    let reports = listened_to(&DOMAIN, "not tracked");
    let guard = DOMAIN.read();
    // The worker notices as well: no thread waits in a call here.
    DOMAIN.call(|| ()).expect("there is room");
    let _asked = DOMAIN.start_poll();
    let report = reports.recv().unwrap();
    assert!(report.oldest_guard.is_none());
    assert!(report.to_string().contains("Srcu::track_guards(true)"), "{report}");
    drop(guard);
    DOMAIN.barrier();
}

#[test]
fn a_child_has_its_own_sections() {
    static DOMAIN: Srcu = Srcu::named("forked");
    let guard = DOMAIN.read();
    in_child(|| {
        let cookie = DOMAIN.start_poll();
        assert!(!DOMAIN.poll(cookie), "the guard is in this process, too");
        drop(guard);
        DOMAIN.wait(cookie);
        DOMAIN.call(|| ()).expect("there is room");
        DOMAIN.barrier();
        drop(DOMAIN.read());
        DOMAIN.synchronize_expedited();
    });
}

#[test]
fn a_child_may_forget_the_sections_of_threads_that_it_does_not_have() {
    static DOMAIN: Srcu = Srcu::named("forgotten");
    while_held(
        || DOMAIN.read(),
        |leave| {
            in_child(|| {
                let cookie = DOMAIN.start_poll();
                assert!(!DOMAIN.poll(cookie), "its section never ends here");
                // SAFETY: the only guard is the one of a thread that is not here.
                unsafe { DOMAIN.forget_sections() };
                DOMAIN.wait(cookie);
                drop(DOMAIN.read());
                DOMAIN.synchronize();
            });
            leave();
        },
    );
    DOMAIN.synchronize();
}
