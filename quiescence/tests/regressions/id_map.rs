//! Faults of `collections::IdMap` that a cold reading found.

use crate::common::*;

use quiescence::collections::IdMap;

/// It removed by id, and a value that replaces another has its id: a session that was renewed
/// meanwhile vanished with the one that had expired.
#[test]
fn retain_removed_a_value_that_it_was_not_asked_about() {
    let map = IdMap::new();
    let [renewed, expired] = [1, 1].map(|value| map.insert(value));
    let mut asked = Vec::new();
    map.retain(|id, value| {
        asked.push((id, *value));
        if id == renewed && *value == 1 {
            map.replace(id, 2).unwrap();
        }
        *value != 1
    });
    assert_eq!(asked, [(renewed, 1), (renewed, 2), (expired, 1)]);
    let reader = map.read();
    assert_eq!((reader.get(renewed), reader.get(expired)), (Some(&2), None));
}

/// It leaked the values after the first.
#[test]
fn a_panic_in_a_drop_leaked_the_rest_of_the_map() {
    struct Last(Arc<AtomicUsize>, bool);

    impl Weigh for Last {}

    impl Drop for Last {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            assert!(!self.1, "the first of them panics");
        }
    }

    let (drops, map) = (Arc::default(), IdMap::new());
    for panics in [true, false, false] {
        map.insert(Last(Arc::clone(&drops), panics));
    }
    catch_unwind(AssertUnwindSafe(|| drop(map))).unwrap_err();
    assert_eq!(drops.load(SeqCst), 3);
}
