//! `Qsbr`: sections without an instruction, for threads that can say when they hold no reference.

use std::sync::mpsc;
use std::thread;

use quiescence::{Domain, Rcu};

fn main() {
    let rules = Rcu::new(vec!["drop 203.0.113.0/24"]);
    let (sender, packets) = mpsc::channel::<u32>();

    thread::scope(|scope| {
        let rules = &rules;
        scope.spawn(move || {
            let mut reader = Domain::global().qsbr();
            // A blocking call: offline, so that updaters need not wait for it.
            while let Ok(packet) = reader.while_offline(|| packets.recv()) {
                let section = reader.read(); // free
                println!("packet {packet}: {} rules", rules.load(&section).len());
                drop(section);
                reader.quiescent_state(); // no reference is held here
            }
        });
        for packet in 0..3 {
            sender.send(packet).expect("the thread is there");
        }
        drop(sender);
        rules.store(vec!["drop 203.0.113.0/24", "accept all"]);
        quiescence::synchronize(); // no thread reads the old rules any more
    });
}
