//! `set_stall_hook`: a reader that stays in its section is named, with the line and its stack.

use std::sync::mpsc;
use std::time::Duration;

use quiescence::Domain;

fn main() {
    let domain = Domain::builder().name("routes").build();
    let mut tuning = domain.tuning();
    tuning.stall_after = Some(Duration::from_millis(20));
    domain.tune(tuning);

    let (tell, told) = mpsc::channel();
    quiescence::report::set_stall_hook(move |report| {
        println!("{report}");
        // No thread may listen any more.
        let _ = tell.send(());
    });

    let (enter, entered) = mpsc::channel();
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name("slow reader".into());
        let reads = || {
            let section = domain.read();
            enter.send(()).unwrap();
            wait_in_a_section(told);
            drop(section);
        };
        reader.spawn_scoped(scope, reads).unwrap();
        entered.recv().unwrap();
        domain.synchronize(); // reported after 20 ms, and the report ends the section
    });
    println!("{} stall", domain.statistics().stalls);
}

/// Blocks until the report has been made.
#[inline(never)]
fn wait_in_a_section(told: mpsc::Receiver<()>) {
    told.recv().unwrap();
}
