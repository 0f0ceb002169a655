//! Faults of `collections::HashMap` that a cold reading found.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, Weak};

use quiescence::collections::HashMap;

/// A key whose hash is another one from some moment on. Growth copied it into a bucket that others
/// were using: safe code could have a reference to freed memory.
#[test]
fn a_key_whose_hash_changes_was_copied_into_a_bucket_in_use() {
    thread_local!(static SHIFT: Cell<u64> = const { Cell::new(0) });

    #[derive(Clone, Copy, PartialEq, Eq)]
    struct Fickle(u64);
    impl Hash for Fickle {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u64(self.0.wrapping_add(SHIFT.get()));
        }
    }
    impl quiescence::Weigh for Fickle {
        const OWNS: bool = false;
        const COPIED: quiescence::Copied<Self> = quiescence::Copied::yes();
    }

    let map = HashMap::<Fickle, u64>::new();
    for n in 0..20_000 {
        map.insert(Fickle(n), n);
        if n % 100 == 0 {
            SHIFT.set(n);
        }
    }
    // Each is somewhere, once; those whose hash is another one are not found by it.
    let view = map.read();
    let mut all: Vec<_> = view.values().copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..20_000).collect::<Vec<_>>());
}

/// A value that is not stored was dropped under the lock of its bucket, where its drop waited for
/// itself if it used the map.
#[test]
fn a_value_that_was_not_stored_was_dropped_under_the_lock() {
    type Names = HashMap<String, Named>;

    struct Named(Weak<OnceLock<Names>>);
    impl Drop for Named {
        fn drop(&mut self) {
            if let Some(names) = self.0.upgrade()
                && let Some(names) = names.get()
            {
                names.remove("dropped");
                names.insert_if_absent("dropped".into(), Named(Weak::new()));
            }
        }
    }
    impl quiescence::Weigh for Named {}

    let names = Arc::new(OnceLock::new());
    let map = names.get_or_init(Names::new);
    assert!(map.insert_if_absent("dropped".into(), Named(Weak::new())));
    assert!(!map.insert_if_absent("dropped".into(), Named(Arc::downgrade(&names))));
    assert_eq!(map.len(), 1);
    quiescence::barrier();
}
