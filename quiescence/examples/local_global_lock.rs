//! `LocalGlobalLock`: read all the time on every CPU, written seldom, and readers see the newest
//! value.

use std::sync::mpsc;
use std::thread;

use quiescence::sync::LocalGlobalLock;

static MOUNTS: LocalGlobalLock<Vec<String>> = LocalGlobalLock::new(Vec::new());

fn main() {
    let (hand_over, guards) = mpsc::channel();
    thread::scope(|scope| {
        for disk in ["sda", "sdb", "sdc"] {
            scope.spawn(move || {
                // Waits for the readers, and is alone.
                MOUNTS.write().push(format!("/mnt/{disk}"));
            });
        }
        for _ in 0..2 {
            let hand_over = hand_over.clone();
            scope.spawn(move || {
                for _ in 0..1_000 {
                    let mounts = MOUNTS.read();
                    assert!(mounts.iter().all(|mount| mount.starts_with("/mnt/")));
                }
                // A guard may end elsewhere.
                hand_over.send(MOUNTS.read()).expect("somebody takes it");
            });
        }
        drop(hand_over);
        for guard in guards {
            assert!(guard.len() <= 3);
        }
    });

    let mounts = MOUNTS.read();
    assert!(MOUNTS.try_write().is_none(), "somebody reads");
    println!("{} mounts", mounts.len());
}
