//! What threads of a test do beside each other, and what a function says that panics.
//!
//! The library's unit tests include this file, too.

#![allow(dead_code, reason = "each of them needs a part of it")]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Calls a function where it is dropped.
#[derive(Debug)]
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// Calls `f` while another thread holds what `begin` returns, until `f` calls its argument, returns
/// or panics.
pub(crate) fn while_held<G, R>(
    begin: impl FnOnce() -> G + Send,
    f: impl FnOnce(&dyn Fn()) -> R,
) -> R {
    let (mut stays, entered, leave) = gate();
    let leave = Cell::new(Some(leave));
    let let_go = || drop(leave.take());
    thread::scope(|scope| {
        let holder = scope.spawn(move || {
            let held = begin();
            stays();
            drop(held);
        });
        let at_the_end = OnDrop(&let_go);
        entered.recv().expect("`begin` returns");
        let result = f(&let_go);
        drop(at_the_end);
        holder.join().unwrap(); // with its thread-locals
        result
    })
}

/// A closure that says that it has begun, and waits until it may end; the receiver of what it says;
/// and the sender whose drop lets it end.
pub(crate) fn gate() -> (impl FnMut() + Send + 'static, Receiver<()>, Sender<()>) {
    let ((enter, entered), (leave, left)) = (mpsc::channel(), mpsc::channel());
    let closure = move || {
        enter.send(()).unwrap();
        _ = left.recv();
    };
    (closure, entered, leave)
}

/// Has so many threads call `f`, each with its number; what they return, in their order.
pub(crate) fn threads<R: Send>(many: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let f = &f;
        let threads: Vec<_> = (0..many).map(|number| scope.spawn(move || f(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Has so many threads do something again and again, until `f` has returned or panics: each calls
/// what `begin` returns for its number.
pub(crate) fn beside<R, A: FnMut()>(
    many: usize,
    begin: impl Fn(usize) -> A + Sync,
    f: impl FnOnce() -> R,
) -> R {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (begin, stop) = (&begin, &stop);
        let _at_the_end = OnDrop(|| stop.store(true, Relaxed));
        for number in 0..many {
            scope.spawn(move || {
                let mut again = begin(number);
                while !stop.load(Relaxed) {
                    again();
                }
            });
        }
        f()
    })
}

/// Calls `f` on a thread of its own, and waits for the end of that.
pub(crate) fn elsewhere<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| scope.spawn(f).join().unwrap())
}

/// Lets other threads run until it is so.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// What `f` says when it panics, which it must.
pub(crate) fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { panic!("it does not panic") };
    let said = payload.downcast_ref::<&str>().map(|said| (*said).to_owned());
    said.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}
