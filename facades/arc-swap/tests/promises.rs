//! What programs rely on with arc-swap, each by its own test.

use std::sync::Arc;
use std::thread;

use arc_swap::access::{Access, Constant, DynAccess, Map};
use arc_swap::cache::Access as _;
use arc_swap::{ArcSwap, ArcSwapOption, Cache, Guard, RefCnt};

#[test]
fn a_store_drops_the_old_value() {
    let first = Arc::new(1);
    let shared = ArcSwap::new(Arc::clone(&first));
    let guard = shared.load();
    shared.store(Arc::new(2));
    assert_eq!((Arc::strong_count(&first), **guard), (2, 1));
    drop(guard);
    assert_eq!(Arc::strong_count(&first), 1);
}

#[test]
fn what_is_neither_static_nor_weighed_may_be_there() {
    struct Unweighed<'a>(&'a str);
    let text = String::from("borrowed");
    let shared = ArcSwap::from_pointee(Unweighed(&text));
    assert_eq!(shared.swap(Arc::new(Unweighed("other"))).0, "borrowed");
    assert_eq!(shared.into_inner().0, "other");
}

#[test]
fn compare_and_swap_takes_pointers_guards_and_addresses() {
    let one = Arc::new(1);
    let shared = ArcSwapOption::from(Some(Arc::clone(&one)));
    shared.compare_and_swap(&one_of(&one), Some(Arc::new(2)));
    assert_eq!(shared.load_full().as_deref(), Some(&2));
    shared.compare_and_swap(shared.load(), Some(Arc::new(3)));
    let seen = shared.load();
    shared.compare_and_swap(&seen, Some(Arc::new(4)));
    drop(seen);
    shared.compare_and_swap(std::ptr::null(), None);
    assert_eq!(shared.load_full().as_deref(), Some(&4));
    let was = shared.compare_and_swap(&None::<Arc<i32>>, None);
    assert_eq!(Guard::into_inner(was).as_deref(), Some(&4));
}

fn one_of(one: &Arc<i32>) -> Option<Arc<i32>> {
    Some(Arc::clone(one))
}

#[test]
fn rcu_loses_no_update() {
    let count = ArcSwap::from_pointee(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| drop(count.rcu(|n| **n + 1))));
        }
    });
    assert_eq!(**count.load(), 4_000);
}

#[test]
fn a_cache_sees_what_is_new() {
    let shared = Arc::new(ArcSwap::from_pointee((1, "one")));
    let mut cache = Cache::new(Arc::clone(&shared));
    assert_eq!(cache.load().0, 1);
    let mut names = cache.clone().map(|pair: &Arc<(i32, &str)>| &pair.1);
    shared.store(Arc::new((2, "two")));
    assert_eq!((cache.load().0, *names.load()), (2, "two"));
    assert_eq!(cache.arc_swap().load().0, 2);
}

#[test]
fn parts_and_constants_are_accesses() {
    let shared = Arc::new(ArcSwap::from_pointee((80_u16, true)));
    let part = Map::new(Arc::clone(&shared), |pair: &(u16, bool)| &pair.0);
    let objects: [Box<dyn DynAccess<u16>>; 2] = [Box::new(part), Box::new(Constant(8080))];
    assert_eq!(objects.each_ref().map(|object| *DynAccess::load(&**object)), [80, 8080]);
    shared.store(Arc::new((81, false)));
    assert_eq!(*Access::load(&shared.map(|pair: &(u16, bool)| &pair.0)), 81);
    assert_eq!(*DynAccess::load(&*objects[0]), 81);
}

#[test]
fn a_static_may_be_empty() {
    static SHARED: ArcSwapOption<u32> = ArcSwapOption::const_empty();
    assert!(SHARED.load().is_none());
    SHARED.store(Some(Arc::new(1)));
    assert_eq!(format!("{SHARED:?}"), "ArcSwapAny(Some(1))");
    let pointer = <Option<Arc<u32>> as RefCnt>::as_ptr(&SHARED.load());
    assert!(!pointer.is_null());
}

#[cfg(feature = "weak")]
#[test]
fn weak_pointers_have_a_count_of_their_own() {
    let value = Arc::new(1);
    let strong = ArcSwap::new(Arc::clone(&value));
    let weak = arc_swap::ArcSwapWeak::new(Arc::downgrade(&value));
    let guard = strong.load();
    weak.store(std::sync::Weak::new());
    assert_eq!((Arc::strong_count(&value), Arc::weak_count(&value)), (2, 0));
    assert!(weak.load().upgrade().is_none());
    drop(guard);
}

#[cfg(feature = "serde")]
#[test]
fn a_place_is_serialized_as_what_is_there() {
    let shared = ArcSwap::from_pointee(7);
    assert_eq!(serde_json::to_string(&shared).unwrap(), "7");
    assert_eq!(**serde_json::from_str::<ArcSwap<u32>>("7").unwrap().load(), 7);
}
