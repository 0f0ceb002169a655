//! `rcu bench cells`: an `Arc` in a place where it can be replaced, and hazard pointers. Loads of a
//! guard and of an `Arc`, stores, and what waits after the last one.

use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, Threads, What, scene};

const LOAD: &[Metric] = &[Metric::new("load", Unit::Nanoseconds)];
const STORE: &[Metric] = &[
    Metric::new("store", Unit::Nanoseconds),
    Metric::new("CPU", Unit::Nanoseconds),
    Metric::new("p99.9", Unit::Nanoseconds),
    Metric::new("unreclaimed peak", Unit::Objects),
];
const STORE_LOADED: &[Metric] = &[Metric::new("store", Unit::Nanoseconds)];
const GARBAGE: &[Metric] = &[
    Metric::new("freed after", Unit::Nanoseconds),
    Metric::new("waiting", Unit::Objects),
    Metric::new("memory", Unit::Bytes),
];
const PROTECT: &[Metric] = &[Metric::new("pair", Unit::Nanoseconds)];

const ONE: Threads = Threads::Same(1);
const TWO: Threads = Threads::Same(2);

/// The suite. Stores beside 200 threads last: some designs look at every thread that they have ever
/// seen.
pub static SCENES: Scenes = Scenes {
    bench: "cells",
    bases: &["quiescence"],
    groups: &[
        ("load", "What stands for the Arc for as long as its word is read, and back"),
        ("full", "Getting an Arc that can be replaced, and giving it back"),
        ("protect", "A pointer protected by a hazard pointer, its word read, and back"),
        ("store", "Replacing the Arc by a new one: alone, beside a reader, after 200 threads"),
        ("garbage", "What waits after the last of many stores, and for how long"),
    ],
    all: &[
        scene("load/1-thread", "load a guard, one thread", LOAD, load(ONE)),
        scene("load/2-threads", "load a guard, two threads", LOAD, load(TWO)),
        scene("full/1-thread", "an Arc and back, one thread", LOAD, full(ONE)),
        scene("full/2-threads", "an Arc and back, two threads", LOAD, full(TWO)),
        scene("protect/1-thread", "protect and release, one thread", PROTECT, protect(ONE)),
        scene("protect/2-threads", "protect and release, two threads", PROTECT, protect(TWO)),
        scene("store/alone", "store, no reader", STORE, What::StoreNew(0)),
        scene("store/1-reader", "store, one busy reader", STORE, What::StoreNew(1)),
        scene("garbage/last-store", "after the last store", GARBAGE, What::Garbage),
        scene(
            "store/200-threads",
            "store, 200 threads have loaded",
            STORE_LOADED,
            What::Store(200),
        ),
    ],
};

const fn load(threads: Threads) -> What {
    What::Loop(|rival| rival.guard, threads)
}

const fn full(threads: Threads) -> What {
    What::Loop(|rival| rival.arc, threads)
}

const fn protect(threads: Threads) -> What {
    What::Loop(|rival| rival.protect, threads)
}
