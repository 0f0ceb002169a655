//! An environment variable that is not understood is complained of once, and is as if it had not
//! been said.

use quiescence::tuning::{Fences, fences};

use crate::c::*;

/// A variable, what it is set to, and whether that is complained of.
const SAID: [(&str, &str, bool); 10] = [
    ("QUIESCENCE_FENCES", "bogus", true),
    ("QUIESCENCE_FENCES", "portable", false),
    ("QUIESCENCE_PERCPU", "bogus", true),
    ("QUIESCENCE_DEBUG", "yes", true),
    ("QUIESCENCE_DEBUG", "0", false),
    ("QUIESCENCE_DEBUG", "", false),
    ("QUIESCENCE_LAZY_MS", "soon", true),
    ("QUIESCENCE_STALL_SIGNAL", "SIGUSR1", true),
    ("QUIESCENCE_STALL_SIGNAL", "99", true),
    ("QUIESCENCE_STALL_SIGNAL", "off", false),
];

/// Looks at all of it, in this process: a reader that runs holds a grace period up until that is
/// reported.
fn look_at_everything() {
    let variable = |name: &str| std::env::var(name).ok();
    attach();
    let is_portable = variable("QUIESCENCE_FENCES").as_deref() == Some("portable");
    assert!(is_portable || fences() == Fences::Membarrier);
    assert!(!quiescence_urcu_debugging());
    quiescence::tuning::per_cpu_path();
    let (tell, told) = mpsc::channel();
    quiescence::report::set_stall_hook(move |report| _ = tell.send(report.clone()));
    thread::scope(|scope| {
        let updater = || quiescence_urcu_synchronize(MEMB);
        // Runs all the time, and is asked for its stack.
        let is_off = variable("QUIESCENCE_STALL_SIGNAL").as_deref() == Some("off");
        let wanted = |report: &quiescence::report::StallReport| {
            let [holdout] = &report.holdouts[..] else { return false };
            match is_off {
                true => holdout.stack == Err(quiescence::report::StackMissing::TurnedOff),
                false => holdout.stack.is_ok(),
            }
        };
        in_section(MEMB, || {
            scope.spawn(updater);
            until(|| told.try_recv().is_ok_and(|report| wanted(&report)));
        });
    });
}

#[test]
fn what_cannot_be_understood_is_complained_of_once() {
    if role().is_some() {
        return look_at_everything();
    }
    for (name, value, is_wrong) in SAID {
        let output = again(this_test!(), "look", &[("QUIESCENCE_STALL_MS", "20"), (name, value)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}={value}: {said}");
        let complaints = said.matches(&format!("quiescence: {name}={value} is not ")).count();
        assert_eq!(complaints, usize::from(is_wrong), "{name}={value}: {said}");
    }
}
