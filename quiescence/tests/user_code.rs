//! Where user code runs: each place has a name in `src/os/user_code.rs`, and user code is called at
//! these places only.

#[path = "common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;

/// What calls user code, as it stands in the sources: only inside of `user_code::run` or `caught`.
const CALLS: [&str; 5] =
    [".wake()", ".wake_by_ref()", "context.waker().clone()", "catch_unwind(", "hook(report)"];

/// Files that have such a call for a reason of their own.
const EXCEPTIONS: [(&str, &str, &str); 7] = [
    ("os/user_code.rs", "catch_unwind(", "is what the others go through"),
    ("os/lock_rank.rs", "catch_unwind(", "tests"),
    ("domain/tasks.rs", "catch_unwind(", "hands what a barrier panics with to its task"),
    ("gp/grace_periods.rs", ".wake()", "a futex"),
    ("gp/grace_periods/liburcu.rs", ".wake()", "a futex"),
    ("gp/grace_periods/handover.rs", ".wake()", "a futex"),
    ("gp/gp_words.rs", ".wake()", "a futex"),
];

/// The sources of the library, without comments and without tests at their ends.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut files) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("\nmod tests {").next().unwrap();
            let is_code = |line: &&str| !line.trim_start().starts_with("//");
            files.push((name, text.lines().filter(is_code).collect::<Vec<_>>().join("\n")));
        }
    }
    assert!(files.len() > 200, "only {} files", files.len());
    files
}

#[test]
#[cfg_attr(miri, ignore = "reads the sources")]
fn user_code_is_called_at_marked_places_only() {
    let mut unmarked = Vec::new();
    for (file, text) in sources() {
        if file.starts_with("chaos") || file.contains("tests") || file.starts_with("sync/writers") {
            continue;
        }
        for line in text.lines() {
            for call in CALLS.iter().filter(|call| line.contains(**call)) {
                let is_known = EXCEPTIONS.iter().any(|(of, known, _)| *of == file && known == call);
                let is_marked = ["user_code::run(", "user_code::caught("]
                    .iter()
                    .any(|mark| line.find(mark).is_some_and(|at| at < line.find(call).unwrap()));
                if !is_known && !is_marked {
                    unmarked.push(format!("{file}: {}", line.trim()));
                }
            }
        }
    }
    assert!(unmarked.is_empty(), "user code outside of os/user_code.rs: {unmarked:#?}");
}

#[cfg(debug_assertions)]
mod places {
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::future::Future;
    use std::pin::pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, RawWaker, RawWakerVTable, Wake, Waker};

    use quiescence::__private::{Site, here};
    use quiescence::collections::{HashMap, IdMap, List, Queue};
    use quiescence::sync::{BigRef, Latch, PerCpu, SeqLock};
    use quiescence::{ArcCell, Domain, ExactCell, Qsbr, Rcu, RcuRef, Snapshot, Weigh, epoch};

    static SEEN: Mutex<BTreeSet<Site>> = Mutex::new(BTreeSet::new());

    /// User code was called where `site` says.
    #[track_caller]
    fn at(site: Site) {
        assert_eq!(here(), Some(site));
        SEEN.lock().unwrap().insert(site);
    }

    /// Its drop and its weight are user code.
    #[derive(Clone)]
    struct Owned(Option<Site>);

    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.into_iter().for_each(at);
        }
    }

    impl Weigh for Owned {
        fn owned(&self) -> usize {
            at(Site::Weigh);
            64
        }
    }

    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            at(Site::WakerClone);
            RawWaker::new(data, &VTABLE)
        },
        |_| at(Site::Wake),
        |_| at(Site::Wake),
        |_| {
            if here().is_some() {
                at(Site::WakerDrop);
            }
        },
    );

    #[test]
    fn closures_are_called_where_their_place_says() {
        let value = Rcu::new(1);
        value.with(|_| at(Site::Project));
        value.update(|value| {
            at(Site::Update);
            value + 1
        });
        drop(RcuRef::map(value.read(), |value| {
            at(Site::Project);
            value
        }));
        ArcCell::from_pointee(1).rcu(|value| {
            at(Site::Update);
            Arc::new(**value)
        });
        ExactCell::new(Arc::new(1)).rcu(|value| {
            at(Site::Update);
            Arc::clone(value)
        });
        let same = |value: u64| {
            at(Site::Update);
            value
        };
        Snapshot::new(1_u64).update(same);
        SeqLock::new(1_u64).update(same);
        Latch::new(1_u64).update(same);
        drop(PerCpu::new(|_| at(Site::Make)));
        Qsbr::register().while_offline(|| at(Site::Scope));
        epoch::pin().repin_after(|| at(Site::Scope));
        drop(BigRef::with_release((), |()| at(Site::Release)));
        let ids = IdMap::new();
        let id = ids.insert_with(|_| {
            at(Site::Make);
            1
        });
        ids.update(id, |value| {
            at(Site::Update);
            value + 1
        });
        ids.retain(|_, _| {
            at(Site::Choose);
            false
        });
        let map = HashMap::new();
        map.read().get_or_insert_with(1, || {
            at(Site::Make);
            1
        });
        map.update(&1, |value| {
            at(Site::Update);
            value + 1
        });
        map.retain(|_, _| {
            at(Site::Choose);
            false
        });
        let list: List<_> = (0..3).collect();
        list.retain(|_| {
            at(Site::Choose);
            false
        });
        assert_eq!(here(), None);
    }

    #[test]
    fn drops_and_callbacks_are_called_where_their_place_says() {
        let domain = Domain::new();
        domain.call(|| at(Site::Callback)).unwrap();
        domain.retire(Box::new(Owned(Some(Site::Callback)))).unwrap();
        domain.barrier();
        let queue = Queue::new();
        queue.push(RefCell::new(Owned(Some(Site::Drop))));
        drop(queue);
        let list = List::new();
        list.push_back(Owned(Some(Site::Drop)));
        drop(list);
        let ids = IdMap::new();
        ids.insert(Owned(Some(Site::Drop)));
        drop(ids);
        let map = HashMap::new();
        map.insert(1, Owned(Some(Site::Drop)));
        drop(map);
        drop(Rcu::new(Owned(Some(Site::Drop))));
        drop(BigRef::new(Owned(Some(Site::Drop))));
        epoch::pin().defer(|| at(Site::Callback));
        // SAFETY: nothing is read under it.
        unsafe { epoch::unprotected() }.defer(|| at(Site::OnTheSpot));
        assert_eq!(here(), None);
    }

    #[test]
    fn wakers_are_called_where_their_place_says() {
        struct Counted;
        impl Wake for Counted {
            fn wake(self: Arc<Self>) {
                at(Site::Wake);
            }
        }
        let domain = Domain::new();
        let wakers = [
            // SAFETY: the data is not used, and the functions are safe to call anywhere.
            unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) },
            Waker::from(Arc::new(Counted)),
        ];
        super::common::beside_a_section(&domain, |leave| {
            let mut future = pin!(domain.synchronize_async());
            for waker in &wakers {
                let _ = future.as_mut().poll(&mut Context::from_waker(waker));
            }
            leave();
            domain.synchronize();
        });
        assert!(SEEN.lock().unwrap().contains(&Site::WakerClone));
        assert_eq!(here(), None);
    }
}
