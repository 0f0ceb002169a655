//! `Srcu`: sections that block, end on another thread, and are held across `.await`.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;

use quiescence::Srcu;

/// One domain for each thing whose readers are to hold up its own updaters only.
static PLUGINS: Srcu = Srcu::named("plugins");

fn main() {
    let plugin = PLUGINS.rcu(String::from("first"));

    // A section that goes from thread to thread, and may take as long as it likes.
    thread::scope(|scope| {
        let (hand_on, handed) = mpsc::channel();
        scope.spawn(|| {
            for guard in handed {
                let name = plugin.load(&guard);
                assert!(name == "first" || name == "second");
            }
        });
        for _ in 0..1_000 {
            hand_on.send(PLUGINS.read()).expect("the other thread listens");
        }
        drop(hand_on);
        plugin.store(String::from("second")); // the first one is dropped after a grace period
    });

    // An updater that is a task. It needs no runtime: any executor does, such as this loop. It
    // awaits, and calls nothing that blocks: the sections that it waits for may be those of other
    // tasks of the same thread.
    let mut update = pin!(async {
        let old = plugin.swap(String::from("third"));
        let old = old.into_inner_async().await; // no thread uses the second one any more
        plugin.store_async(String::from("fourth")).await; // waits for room, if so much waits already
        PLUGINS.barrier_async().await; // the third one has been dropped
        old
    });
    let mut context = Context::from_waker(Waker::noop());
    let old = loop {
        match update.as_mut().poll(&mut context) {
            Poll::Ready(old) => break old,
            Poll::Pending => thread::yield_now(),
        }
    };
    println!("{old:?} was replaced by {:?}", plugin.load(&PLUGINS.read()));
}
