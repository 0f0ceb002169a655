//! `ArcCell`: a configuration that is replaced while requests that began with the old one keep it.

use std::sync::Arc;
use std::thread;

use quiescence::{
    ArcCell, Weigh,
    cell::{ArcCellOption, ArcGuard},
    hazard,
};

#[derive(Debug, Weigh)]
struct Config {
    version: u32,
    greeting: &'static str,
}

/// Empty until somebody logs in.
static USER: ArcCellOption<String> = ArcCellOption::empty();

fn main() {
    let config = ArcCell::from_pointee(Config { version: 1, greeting: "hello" });

    // A request keeps what it has loaded as long as it likes, on any thread.
    let request = config.load();
    let answer =
        thread::spawn(move || format!("{} (version {})", request.greeting, request.version));

    // Replaced from the old one; begun anew if somebody else was faster.
    let old = config.rcu(|old| Config { version: old.version + 1, greeting: "good day" });
    println!("{}, then {}", answer.join().unwrap(), config.load().greeting);

    // Only if no thread has changed it meanwhile.
    let seen = config.load();
    let before = config.compare_and_swap(&seen, Arc::new(Config { version: 3, greeting: "hi" }));
    assert!(Arc::ptr_eq(&before, ArcGuard::as_inner(&seen)), "no thread had");
    hazard::barrier(); // else the cell's reference to it goes within 10 ms
    assert_eq!(Arc::strong_count(&old), 1, "only `old` holds the first one now");

    USER.store(Some(Arc::new(String::from("ada"))));
    if let Some(user) = &*USER.load() {
        println!("{}, {user}: {:?}", config.load().greeting, config.load());
    }
}
