//! `BigRef`: a reference count for what every request refers to, and that is taken out of service
//! once.

use std::sync::{Barrier, mpsc};
use std::thread;

use quiescence::sync::BigRef;

/// Something that must not go while a request uses it.
struct Device {
    name: &'static str,
}

fn main() {
    let (gone, removed) = mpsc::channel();
    let device = BigRef::with_release(Device { name: "sda" }, move |device: Device| {
        gone.send(device.name).expect("main waits for it");
    });

    let begun = Barrier::new(3);
    let served: u64 = thread::scope(|scope| {
        let serve = || {
            let mut served = 1;
            drop(device.get());
            begun.wait();
            // Each request has a reference of its own, and gives it back.
            while let Some(device) = device.try_get() {
                assert_eq!(device.name, "sda");
                served += 1;
            }
            served // no more are given out
        };
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(serve)).collect();

        let last = device.get();
        begun.wait();
        assert!(device.kill(), "nobody else does");
        assert!(removed.try_recv().is_err(), "{} is still referred to", last.name);
        drop(last);
        workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
    });

    let name = removed.recv().expect("released");
    assert!(removed.recv().is_err(), "once");
    assert!(served >= 2);
    println!("{name} is gone, and was of use");
}
