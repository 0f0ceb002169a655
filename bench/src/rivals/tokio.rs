//! tokio's `RwLock`, whose sections may cross an `.await`: taken by trying, and by waiting.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::RwLock;

use super::Rival;
use crate::cases::BATCH;
use crate::cases::loops::{Looped, repeat};
use crate::serve::Domain;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("tokio-rwlock-try").times(Looped::Sleepable, section_try),
    Rival::new("tokio-rwlock-await").times(Looped::Sleepable, section_await),
    Rival::new("tokio-rwlock").domain::<RwLock<()>>(),
];

static LOCK: RwLock<()> = RwLock::const_new(());

fn section_try(batches: u64) -> Duration {
    let lock = black_box(&LOCK);
    repeat(batches, || u64::from(lock.try_read().is_ok()))
}

/// On a runtime of the calling thread, in one task: the runtime itself is entered once.
fn section_await(batches: u64) -> Duration {
    let runtime = Builder::new_current_thread()
        .build()
        .expect("a runtime without drivers needs nothing of the system");
    let lock = black_box(&LOCK);
    runtime.block_on(async {
        let begin = Instant::now();
        for _ in 0..batches * BATCH {
            drop(black_box(lock.read().await));
        }
        begin.elapsed()
    })
}

impl Domain for RwLock<()> {
    fn new() -> Self {
        Self::new(())
    }

    fn read(&self) {
        drop(self.try_read());
    }

    fn wait(&self) {
        drop(self.try_write());
    }
}
