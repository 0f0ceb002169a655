//! tokio's `RwLock`, whose sections may cross an `.await`: taken by trying, and by waiting.

use std::hint::black_box;
use std::time::Instant;

use tokio::runtime::Builder;
use tokio::sync::RwLock;

use super::Rival;
use crate::cases::BATCH;
use crate::cases::loops::{Loop, Looped, sections};
use crate::serve::Domain;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("tokio-rwlock-try").times(Looped::Sleepable, sections::<RwLock<()>>),
    Rival::new("tokio-rwlock-await").times(Looped::Sleepable, section_await),
    Rival::new("tokio-rwlock").domain::<RwLock<()>>(),
];

/// On a runtime of the calling thread, in one task: the runtime itself is entered once.
fn section_await() -> Loop {
    let lock = RwLock::new(());
    Loop::new(move |batches| {
        let runtime = Builder::new_current_thread()
            .build()
            .expect("a runtime without drivers needs nothing of the system");
        let lock = black_box(&lock);
        runtime.block_on(async {
            let begin = Instant::now();
            for _ in 0..batches * BATCH {
                drop(black_box(lock.read().await));
            }
            begin.elapsed()
        })
    })
}

impl Domain for RwLock<()> {
    fn new() -> Self {
        Self::new(())
    }

    #[inline(always)]
    fn read<R>(&self, inside: impl FnOnce() -> R) -> R {
        let _guard = self.try_read().expect("nobody writes");
        inside()
    }

    fn wait(&self) {
        drop(self.try_write());
    }
}
