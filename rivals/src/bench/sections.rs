//! Entering a section and leaving it again, or locking for a read and unlocking: nothing is read.
//!
//! Two lists: what may sleep or cross an `.await` ([`sleepable`]), and what a thread keeps to itself
//! ([`local`]). The thread reader's pair is in both.

use std::hint::black_box;
use std::sync::{LazyLock, RwLock};
use std::time::{Duration, Instant};

use crossbeam_utils::sync::ShardedLock;
use quiescence::Srcu;
use quiescence::sync::LocalGlobalLock;

use super::BATCH;
use super::single::{Single, repeat};

/// Sections in which a reader may sleep, the library's own first.
pub fn sleepable() -> &'static [Single] {
    &SLEEPABLE
}

/// Sections beside a lock that is cheap to take for reading, the library's own first.
pub fn local() -> &'static [Single] {
    &LOCAL
}

static SLEEPABLE: [Single; 6] = [
    Single::ours("quiescence", srcu),
    Single::ours("quiescence-thread", thread_reader),
    Single::rival("parking_lot-rwlock", parking_lot_rwlock),
    Single::rival("std-rwlock", std_rwlock),
    Single::rival("tokio-rwlock-try", tokio_try),
    Single::rival("tokio-rwlock-await", tokio_await),
];

static LOCAL: [Single; 5] = [
    Single::ours("quiescence", local_global),
    Single::ours("quiescence-thread", thread_reader),
    Single::rival("crossbeam-sharded-lock", sharded_lock),
    Single::rival("parking_lot-rwlock", parking_lot_rwlock),
    Single::rival("std-rwlock", std_rwlock),
];

fn srcu(batches: u64) -> Duration {
    static DOMAIN: Srcu = Srcu::new();
    let domain = black_box(&DOMAIN);
    repeat(batches, || {
        drop(domain.read());
        1
    })
}

fn local_global(batches: u64) -> Duration {
    static LOCK: LocalGlobalLock<()> = LocalGlobalLock::new(());
    let lock = black_box(&LOCK);
    repeat(batches, || {
        drop(lock.read());
        1
    })
}

fn thread_reader(batches: u64) -> Duration {
    repeat(batches, || {
        drop(quiescence::read());
        1
    })
}

fn std_rwlock(batches: u64) -> Duration {
    static LOCK: RwLock<()> = RwLock::new(());
    let lock = black_box(&LOCK);
    repeat(batches, || {
        drop(lock.read().expect("no reader panics"));
        1
    })
}

fn parking_lot_rwlock(batches: u64) -> Duration {
    static LOCK: parking_lot::RwLock<()> = parking_lot::RwLock::new(());
    let lock = black_box(&LOCK);
    repeat(batches, || {
        drop(lock.read());
        1
    })
}

fn sharded_lock(batches: u64) -> Duration {
    static LOCK: LazyLock<ShardedLock<()>> = LazyLock::new(|| ShardedLock::new(()));
    let lock = black_box(&*LOCK);
    repeat(batches, || {
        drop(lock.read().expect("no reader panics"));
        1
    })
}

static TOKIO: tokio::sync::RwLock<()> = tokio::sync::RwLock::const_new(());

fn tokio_try(batches: u64) -> Duration {
    let lock = black_box(&TOKIO);
    repeat(batches, || u64::from(lock.try_read().is_ok()))
}

/// On a runtime of the calling thread, in one task: the runtime itself is entered once.
fn tokio_await(batches: u64) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers needs nothing of the system");
    let lock = black_box(&TOKIO);
    runtime.block_on(async {
        let begin = Instant::now();
        for _ in 0..batches * BATCH {
            drop(black_box(lock.read().await));
        }
        begin.elapsed()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::single::tests::all_work;

    #[test]
    fn every_section_is_entered_and_left() {
        all_work(sleepable());
        all_work(local());
    }
}
