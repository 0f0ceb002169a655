//! `rcu bench percpu`: what is done on the slot of the CPU. Reads that no grace period waits
//! for, counters, references, and locks that are cheap to read.

use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, Threads, What, scene};

const SNAPSHOT: &[Metric] = &[Metric::new("read", Unit::Nanoseconds)];
const WRITE: &[Metric] = &[Metric::new("write", Unit::Nanoseconds)];
const COUNTER: &[Metric] = &[Metric::new("add", Unit::Nanoseconds)];
const LOCK: &[Metric] = &[Metric::new("pair", Unit::Nanoseconds)];
const GRACE: &[Metric] =
    &[Metric::new("p50", Unit::Nanoseconds), Metric::new("p99", Unit::Nanoseconds)];

const ONE: Threads = Threads::Same(1);
const TWO: Threads = Threads::Same(2);

/// The suite.
pub static SCENES: Scenes = Scenes {
    bench: "percpu",
    bases: &["quiescence"],
    groups: &[
        ("snapshot", "Four words that are read whole, and written, with and without the other"),
        ("counter", "Adding one to a counter"),
        ("lock", "Taking a lock for reading, and giving it back"),
        ("bigref", "Getting a reference, and giving it back"),
        ("grace", "Grace periods beside six readers with sections of 1 µs"),
    ],
    all: &[
        scene("snapshot/1-thread", "four words, one thread", SNAPSHOT, snapshot(ONE)),
        scene("snapshot/2-threads", "four words, two threads", SNAPSHOT, snapshot(TWO)),
        scene(
            "snapshot/1-writer",
            "four words, beside a write every 10 µs",
            SNAPSHOT,
            snapshot(Threads::Beside),
        ),
        scene("snapshot/write", "four words, written", WRITE, snapshot_write(ONE)),
        scene(
            "snapshot/2-writers",
            "four words, written by two threads",
            WRITE,
            snapshot_write(TWO),
        ),
        scene(
            "snapshot/write-1-reader",
            "four words, written beside a reader",
            WRITE,
            snapshot_write(Threads::Beside),
        ),
        scene("counter/1-thread", "add one, one thread", COUNTER, counter(ONE)),
        scene("counter/2-threads", "add one, two threads", COUNTER, counter(TWO)),
        scene("lock/1-thread", "read lock and unlock, one thread", LOCK, lock(ONE)),
        scene("lock/2-threads", "read lock and unlock, two threads", LOCK, lock(TWO)),
        scene("bigref/1-thread", "get and put, one thread", LOCK, bigref(ONE)),
        scene("bigref/2-threads", "get and put, two threads", LOCK, bigref(TWO)),
        scene("grace/6-readers", "6 readers with sections of 1 µs", GRACE, What::Grace(6)),
    ],
};

const fn snapshot(threads: Threads) -> What {
    What::Loop(|rival| rival.cell, threads)
}

const fn snapshot_write(threads: Threads) -> What {
    What::Loop(|rival| rival.cell_store, threads)
}

const fn counter(threads: Threads) -> What {
    What::Loop(|rival| rival.count, threads)
}

const fn lock(threads: Threads) -> What {
    What::Loop(|rival| rival.local, threads)
}

const fn bigref(threads: Threads) -> What {
    What::Loop(|rival| rival.reference, threads)
}
