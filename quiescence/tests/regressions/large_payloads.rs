//! What waits, and is larger than a page of a thread's queue.

use crate::common::*;
use quiescence::Retire;
use quiescence::epoch::Collector;

const WORDS: usize = 1_000;

struct Owner {
    words: [u64; WORDS],
    _dropped: Dropped,
}

impl Retire for Owner {
    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// A closure, or a value, of more than 4,072 bytes did not compile, though it waits in a box.
#[test]
fn what_is_larger_than_a_page_of_the_queue_can_wait() {
    let (domain, dropped) = (Domain::new(), Arc::new(AtomicUsize::new(0)));
    let owner = |number| Owner { words: [number; WORDS], _dropped: Dropped(Arc::clone(&dropped)) };
    let look = |owner: &Owner| assert_eq!(owner.words, [owner.words[0]; WORDS]);
    for number in 0..3 {
        let (called, deferred) = (owner(number), owner(number));
        domain.call(move || look(&called)).unwrap();
        domain.retire(owner(number)).unwrap();
        let handle = Collector::new_in(domain.clone()).register();
        handle.pin().defer(move || look(&deferred));
    }
    domain.barrier();
    assert_eq!(dropped.load(SeqCst), 9);
    assert_eq!(domain.statistics().callbacks_panicked, 0);
}
