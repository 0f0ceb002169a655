//! `call`, `call_hurry` and `Tuning::lazy`: callbacks that wait for company, and one that does not.

use std::sync::mpsc;
use std::time::Duration;

use quiescence::Domain;

fn main() {
    let domain = Domain::new();
    let mut tuning = domain.tuning();
    tuning.lazy = Duration::from_secs(3600); // 100 ms by default
    domain.tune(tuning);

    // In no hurry: nothing is asked for on their behalf, so an idle process stays idle.
    let (tell, told) = mpsc::channel();
    for name in ["first", "second"] {
        let tell = tell.clone();
        domain.call(move || tell.send(name).unwrap()).unwrap();
    }
    assert_eq!(domain.statistics().grace_periods, 0);

    // Now. Those that wait go along; the callbacks of a thread run in order.
    domain.call_hurry(move || tell.send("third").unwrap()).unwrap();
    let names: Vec<_> = told.iter().collect();
    assert_eq!(names, ["first", "second", "third"]);
    println!("{} grace periods for {names:?}", domain.statistics().grace_periods);
}
