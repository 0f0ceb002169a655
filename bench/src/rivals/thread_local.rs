//! The crate `thread_local`: a word for each thread, which only that thread writes. It is how cheap
//! a counter can be if each thread may have a word for good. `rcu advise --pinned` advises it.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use thread_local::ThreadLocal;

use super::Rival;
use crate::cases::loops::{Looped, counts};
use crate::shapes::counting;

type Words = ThreadLocal<CachePadded<AtomicU64>>;

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("thread-local").counter::<Words>().times(Looped::Count, counts::<Words>)];

counting! {
    // Relaxed, as the loads in the sum: a count that orders nothing.
    Words, exact: false,
        add: |words| {
            let word = words.get_or_default();
            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        },
        sum: |words| words.iter().map(|word| word.load(Ordering::Relaxed)).sum();
}
