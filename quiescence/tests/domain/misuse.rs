//! Mistakes are refused with a message that names the places, never undefined behaviour.

use crate::common::user_types::BOMB;
use crate::common::*;
use quiescence::collections::{IdMap, List};
use quiescence::raw;

#[test]
fn synchronize_inside_a_section_names_both_places() {
    let domain = Domain::new();
    let begun = line!() + 1;
    let guard = domain.read();
    let called = line!() + 1;
    let said = panic_of(|| domain.synchronize());
    assert!(said.contains(&format!("misuse.rs:{begun}:")), "{said}");
    assert!(said.contains(&format!("misuse.rs:{called}:")), "{said}");
    assert!(said.contains("synchronize"), "{said}");
    // So do the others that wait, and the domain still works afterwards.
    assert!(panic_of(|| domain.synchronize_expedited()).contains("misuse.rs"));
    assert!(panic_of(|| domain.barrier()).contains("barrier"));
    let cookie = domain.cookie();
    assert!(panic_of(|| domain.wait(cookie)).contains("wait"));
    drop(guard);
    domain.synchronize();
    domain.barrier();
    domain.wait(cookie);
}

#[test]
fn the_section_of_an_explicit_reader_and_of_the_global_domain_are_found_too() {
    let domain = Domain::new();
    let reader = domain.reader();
    let guard = reader.read();
    assert!(panic_of(|| domain.synchronize()).contains("read-side"));
    drop(guard);
    domain.synchronize();
    let guard = quiescence::read();
    assert!(panic_of(quiescence::synchronize).contains("read-side"));
    // Another domain is another matter.
    domain.synchronize();
    drop(guard);
    quiescence::synchronize();
}

#[test]
fn synchronize_of_an_online_qsbr_reader_says_what_to_do() {
    let domain = Domain::new();
    let mut reader = domain.qsbr();
    let said = panic_of(|| domain.synchronize());
    assert!(said.contains("Qsbr::synchronize") && said.contains("misuse.rs"), "{said}");
    reader.synchronize();
    reader.while_offline(|| domain.synchronize());
    drop(reader.offline());
}

#[test]
fn a_guard_of_another_domain_is_refused() {
    let (mine, other) = (Domain::new(), Domain::new());
    let value = Rcu::new_in(1, mine.clone());
    let option = RcuOption::new_in(Some(1), mine.clone());
    let guard = other.read();
    assert!(panic_of(|| drop(value.load(&guard).to_string())).contains("another domain"));
    assert!(panic_of(|| option.load(&guard).copied()).contains("another domain"));
    let qsbr = other.qsbr();
    assert!(panic_of(|| drop(value.load(&qsbr.read()).to_string())).contains("another domain"));
    assert_eq!(*value.load(&mine.read()), 1);

    let list: List<u32, _> = List::new_in(mine.clone());
    let said = panic_of(|| list.iter(&guard).count());
    assert!(said.contains("of another domain than the list"), "{said}");
    let map = IdMap::new_in(mine);
    let id = map.insert(7);
    assert!(panic_of(|| map.get(id, &guard).copied()).contains("of another domain"));
    let value = Rcu::new_in(1, Srcu::new().domain());
    assert!(panic_of(|| *value.load(&Srcu::new().read())).contains("another domain"));
}

#[test]
fn a_cookie_of_another_domain_is_refused() {
    let (mine, other) = (Domain::new(), Domain::new());
    let cookie = other.start_poll();
    assert!(panic_of(|| drop(mine.poll(cookie).to_string())).contains("another domain"));
    assert!(panic_of(|| mine.wait(cookie)).contains("another domain"));
    assert!(other.poll(cookie));
}

/// A domain that has ended leaves its address to others, and its cookies to no thread.
#[test]
fn a_cookie_of_a_domain_that_has_ended_is_refused() {
    for _ in 0..if cfg!(miri) { 5 } else { 100 } {
        let ended = Domain::new();
        ended.synchronize();
        let cookie = ended.cookie();
        drop(ended);
        Domain::new().synchronize();
        let others: [_; 8] = std::array::from_fn(|_| Domain::new());
        for other in &others {
            let said = panic_of(|| assert!(!other.poll(cookie)));
            assert!(said.contains("another domain's"), "{said}");
        }
    }
}

/// What a kind gives out for the macro `domain!` tells nothing of other threads' registrations.
#[test]
fn no_debug_output_looks_into_the_slots() {
    let _reader = Domain::global().reader();
    let shown = format!("{:?}", quiescence::__private::Named::handle(&quiescence::tag::Global));
    assert!(shown.contains("DomainState") && !shown.contains("references"), "{shown}");
}

/// Says when it is dropped, and panics in the drop if it is to.
struct Fragile {
    dropped: Arc<AtomicUsize>,
    panics: bool,
    /// Given back twice if this is dropped twice, which allocators notice.
    #[allow(dead_code)]
    content: Box<u32>,
}

impl Weigh for Fragile {}

impl Fragile {
    fn new(dropped: &Arc<AtomicUsize>, panics: bool) -> Self {
        Self { dropped: Arc::clone(dropped), panics, content: Box::new(7) }
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, SeqCst);
        assert!(!self.panics, "this drop panics, as it should in this test");
    }
}

unsafe fn end_fragile(object: *mut ()) {
    // SAFETY: from such a box.
    drop(unsafe { Box::from_raw(object.cast::<Fragile>()) });
}

type HandOver = fn(&Domain, Fragile);

/// How objects come to wait in a domain.
const WAYS: [(&str, HandOver); 4] = [
    ("retired", |domain, object| domain.retire(Box::new(object)).unwrap()),
    ("captured", |domain, object| domain.call(move || drop(object)).unwrap()),
    ("replaced", |domain, object| Rcu::new_in(Some(object), domain.clone()).store(None)),
    ("with a function", |domain, object| {
        let object = Box::into_raw(Box::new(object));
        // SAFETY: from a box, and no thread can reach it.
        unsafe { raw::retire_with(domain, object, size_of::<Fragile>(), end_fragile) }
    }),
];

/// Neither the updater that drops earlier objects while it retires, nor who waits in `barrier`,
/// hears of a drop that panics.
#[test]
fn an_object_whose_drop_panics_is_counted_and_the_rest_are_dropped() {
    const MANY: usize = rounds(2_000, 40);
    for (way, hand_over) in WAYS {
        let domain = Domain::new();
        let dropped = Arc::new(AtomicUsize::new(0));
        let guard = domain.read();
        hand_over(&domain, Fragile::new(&dropped, false));
        assert_eq!(dropped.load(SeqCst), 0, "{way}: a reader holds the grace period up");
        drop(guard);
        for number in 1..MANY {
            hand_over(&domain, Fragile::new(&dropped, number % (MANY / 4) == 4));
        }
        domain.barrier();
        let panicked = domain.statistics().callbacks_panicked;
        assert_eq!((dropped.load(SeqCst), panicked), (MANY, 4), "{way}");
    }
}

/// What a closure has captured is dropped once, whether it panics before it has used it, or while
/// that is dropped.
#[test]
fn a_closure_that_panics_drops_what_it_captured() {
    let domain = Domain::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let large = [7_u64; 100]; // no closure that is kept in a few words
    for number in 0..9 {
        let captured = Fragile::new(&dropped, number == 5);
        let panics = number % 3 == 1;
        let run = move || {
            assert!(!panics, "callback {number} panics, as it should in this test");
            drop(captured);
        };
        if number < 6 {
            domain.call(run).unwrap();
        } else {
            domain
                .call(move || {
                    if large[0] == 7 {
                        run()
                    }
                })
                .unwrap();
        }
    }
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!(dropped.load(SeqCst), 9);
    // 1, 4 and 7 by themselves, 5 by what it has captured.
    assert_eq!((statistics.callbacks_run, statistics.callbacks_panicked), (9, 4));
}

#[test]
fn the_end_of_a_domain_survives_callbacks_that_panic() {
    let domain = Domain::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    // A section that never ends: the worker runs nothing, the domain's end does.
    raw::read_lock(&domain);
    for number in 0..6 {
        domain.retire(Box::new(Fragile::new(&dropped, number % 2 == 0))).unwrap();
        let captured = Fragile::new(&dropped, false);
        domain
            .call(move || {
                if number % 2 != 0 {
                    panic_any(BOMB); // which panics when it is dropped
                }
                drop(captured);
            })
            .unwrap();
    }
    drop(domain);
    // the worker may have had the last handle
    until(|| dropped.load(SeqCst) >= 12);
}

#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn callbacks_that_panic_are_reported() {
    if role().is_some() {
        let captured = Box::new(4);
        quiescence::call(|| panic!("the closure has panicked")).unwrap();
        quiescence::call(move || panic!("the closure with {captured} has panicked")).unwrap();
        quiescence::retire(Box::new(OnDrop(|| panic!("the object has panicked")))).unwrap();
        return quiescence::barrier();
    }
    let said = ends_again(this_test!(), "child", 0);
    for what in ["the closure", "the closure with 4", "the object"] {
        assert_eq!(said.matches(&format!("{what} has panicked")).count(), 1, "{said}");
    }
}

#[test]
fn a_barrier_inside_a_callback_is_refused() {
    let domain = Domain::new();
    let (inside, said) = (domain.clone(), Arc::new(Mutex::new(String::new())));
    let note = Arc::clone(&said);
    domain.call(move || *note.lock().unwrap() = panic_of(|| inside.barrier())).unwrap();
    domain.barrier();
    assert!(said.lock().unwrap().contains("call()"), "{said:?}");
}

/// A callback that `barrier` runs leaks a section on the very thread that continues to wait: that
/// section must not be taken for a quiescent reader of the waiter's own.
#[test]
fn a_section_that_a_callback_leaks_into_a_barrier_is_found() {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.objects_max = 1_024); // small batches
    drop(domain.read()); // registers: a quiescent reader of this thread
    let busy = occupy_the_worker();
    let dropped = Arc::new(AtomicUsize::new(0));
    // It ends once the barrier waits.
    let section = || (OnDrop(|| until(|| domain.statistics().waiters != 0)), domain.read());
    while_held(section, |leave| {
        // In the first queue: ready after the grace period that waits for that section.
        let inside = domain.clone();
        domain.call(move || std::mem::forget(inside.read())).unwrap();
        while domain.statistics().batches == 0 {
            domain.call(|| ()).unwrap();
        }
        // In the second: ready after the next one.
        elsewhere(|| domain.call(counting(&dropped)).unwrap());
        leave();
        let said = panic_of(|| domain.barrier());
        assert!(said.contains("barrier"), "{said}");
    });
    assert!(panic_of(|| domain.synchronize()).contains("misuse.rs"), "the section is there");
    assert_eq!(dropped.load(SeqCst), 0, "run while a section is open");
    drop(busy);
}

#[test]
fn leaked_guards_are_sections_that_never_end() {
    let domain = Domain::new();
    elsewhere(|| std::mem::forget(domain.read()));
    let cookie = domain.start_poll();
    assert!(!domain.poll(cookie));
    // Retiring continues, waiting does not make sense; the end of the domain frees what waits.
    let dropped = Arc::new(AtomicUsize::new(0));
    domain.call(counting(&dropped)).unwrap();
    assert_eq!(dropped.load(SeqCst), 0);
    drop(domain);
    // the worker may have had the last handle
    until(|| dropped.load(SeqCst) != 0);
}

// ---- what only unsafe code can do
// wrong -------------------------------------------------------------

#[test]
fn sections_without_guards_are_sections() {
    let domain = Domain::new();
    let value = Rcu::new_in(1, domain.clone());
    let begun = line!() + 1;
    raw::read_lock(&domain);
    let guard = domain.read();
    let seen = value.load(&guard);
    let cookie = domain.start_poll();
    raw::read_lock(&domain);
    assert_eq!((raw::nesting(&domain), *seen), (3, 1));
    drop(guard);
    // SAFETY: begun above; what was loaded is not used any more.
    unsafe { raw::read_unlock(&domain) };
    assert_eq!(raw::nesting(&domain), 1);
    assert!(!domain.poll(cookie));
    let said = panic_of(|| domain.synchronize());
    assert!(said.contains(&format!("misuse.rs:{begun}:")), "{said}");
    // Neither another thread's nor another domain's section is this one's.
    assert_eq!(raw::nesting(&Domain::global()), 0);
    elsewhere(|| assert_eq!(raw::nesting(&domain), 0));
    // SAFETY: begun above.
    unsafe { raw::read_unlock(&domain) };
    assert!(domain.poll(cookie));
    domain.synchronize();
    // So it is with the global domain, whose fast path is another.
    let global = Domain::global();
    for _ in 0..2 {
        raw::read_lock(&global);
        raw::read_lock(&global);
        assert_eq!(raw::nesting(&global), 2);
        assert!(panic_of(quiescence::synchronize).contains("read-side"));
        // SAFETY: begun above.
        unsafe { raw::read_unlock(&global) };
        // SAFETY: begun above.
        unsafe { raw::read_unlock(&global) };
        assert_eq!(raw::nesting(&global), 0);
        quiescence::synchronize();
    }
}

#[test]
fn an_unlock_too_many_is_refused_and_its_place_named() {
    let (domain, other) = (Domain::new(), Domain::new());
    let refused = |domain: &Domain| {
        let place = line!() + 2;
        // SAFETY: none; it is refused.
        let said = panic_of(|| unsafe { raw::read_unlock(domain) });
        assert!(said.contains(&format!("misuse.rs:{place}:")), "{said}");
        assert!(said.contains("unbalanced"), "{said}");
    };
    refused(&domain); // never registered
    raw::read_lock(&domain);
    refused(&other);
    elsewhere(|| refused(&domain)); // another thread's section
    // SAFETY: begun above.
    unsafe { raw::read_unlock(&domain) };
    refused(&domain);
    // SAFETY: none; it is refused.
    let said = panic_of(|| unsafe { raw::read_unlock(&Domain::global()) });
    assert!(said.contains("unbalanced"), "{said}");
    // All of that has changed nothing.
    for domain in [&domain, &other] {
        drop(domain.read());
        domain.synchronize();
    }
}

#[cfg(debug_assertions)]
#[test]
fn an_unlock_of_a_guards_section_is_refused() {
    let domain = Domain::new();
    let guard = domain.read();
    // SAFETY: none; it is refused.
    let said = panic_of(|| unsafe { raw::read_unlock(&domain) });
    assert!(said.contains("guards"), "{said}");
    assert_eq!(raw::nesting(&domain), 1);
    drop(guard);
    domain.synchronize();
}

/// An object with a head in it, as C has it.
#[repr(C)]
struct Node {
    head: raw::Head,
    ended: Arc<AtomicUsize>,
}

impl Node {
    fn new(ended: &Arc<AtomicUsize>) -> *mut Self {
        Box::into_raw(Box::new(Self { head: raw::Head::new(), ended: Arc::clone(ended) }))
    }
}

unsafe extern "C" fn end_node(head: *mut raw::Head) {
    // SAFETY: the head is the first in a node, which is from a box.
    let node = unsafe { Box::from_raw(head.cast::<Node>()) };
    node.ended.fetch_add(1, SeqCst);
}

/// Ends it the second time.
unsafe extern "C" fn queue_again(head: *mut raw::Head) {
    // SAFETY: a head whose time has come is free to wait again.
    unsafe { raw::call_head(&Domain::global(), head, end_node) };
}

#[test]
fn heads_are_called_once_each_and_may_be_queued_again_from_there() {
    const MANY: usize = rounds(1_000, 40);
    let domain = Domain::new();
    let ended = Arc::new(AtomicUsize::new(0));
    let guard = domain.read();
    for _ in 0..MANY {
        // SAFETY: a node of its own, that no thread can reach.
        unsafe { raw::call_head(&domain, Node::new(&ended).cast(), end_node) };
    }
    assert_eq!(ended.load(SeqCst), 0, "a reader holds the grace period up");
    drop(guard);
    domain.barrier();
    assert_eq!((ended.load(SeqCst), domain.statistics().callbacks_run), (MANY, MANY as u64));
    // SAFETY: as above.
    unsafe { raw::call_head(&domain, Node::new(&ended).cast(), queue_again) };
    domain.barrier();
    quiescence::barrier();
    assert_eq!(ended.load(SeqCst), MANY + 1);
}

#[cfg(debug_assertions)]
#[test]
fn a_head_that_is_queued_twice_is_refused_and_named() {
    let domain = Domain::new();
    let ended = Arc::new(AtomicUsize::new(0));
    let guard = domain.read();
    let node = Node::new(&ended);
    // SAFETY: a node that no thread can reach.
    unsafe { raw::call_head(&domain, node.cast(), end_node) };
    let place = line!() + 2;
    // SAFETY: none; it is refused.
    let said = panic_of(|| unsafe { raw::call_head(&domain, node.cast(), end_node) });
    assert!(said.contains(&format!("{node:p}")) && said.contains("queued twice"), "{said}");
    assert!(said.contains(&format!("misuse.rs:{place}:")), "{said}");
    // A copy of a head that waits does not, nor does memory that holds anything.
    let copy = Node::new(&ended);
    // SAFETY: both heads are there, and no thread writes them.
    unsafe { node.cast::<[usize; 2]>().copy_to(copy.cast(), 1) };
    // SAFETY: a node that no thread can reach.
    unsafe { raw::call_head(&domain, copy.cast(), end_node) };
    drop(guard);
    assert_eq!(settled(&domain, &ended), 2);
}

#[cfg(debug_assertions)]
#[test]
fn an_object_that_is_retired_twice_is_refused_and_both_places_named() {
    is_refused_twice(|domain, object| {
        // SAFETY: from a box; the second time is refused.
        unsafe { raw::retire_with(domain, object, size_of::<Fragile>(), end_fragile) }
    });
}

/// A box that unsafe code has made a second owner of.
#[cfg(debug_assertions)]
#[test]
#[cfg_attr(miri, ignore = "undefined on purpose")]
fn a_box_that_is_retired_twice_is_refused() {
    is_refused_twice(|domain, object| {
        // SAFETY: from a box; the second time it is refused, and the second owner forgotten.
        domain.retire(unsafe { Box::from_raw(object) }).unwrap();
    });
}

#[cfg(debug_assertions)]
#[track_caller]
fn is_refused_twice(retire: fn(&Domain, *mut Fragile)) {
    let place = format!("misuse.rs:{}:", std::panic::Location::caller().line() + 2);
    let domain = Domain::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let guard = domain.read();
    let object = Box::into_raw(Box::new(Fragile::new(&dropped, false)));
    retire(&domain, object);
    let said = panic_of(|| retire(&domain, object));
    assert!(said.contains(&format!("{object:p}")) && said.contains("retired twice"), "{said}");
    assert_eq!(said.matches(&place).count(), 2, "{said}");
    drop(guard);
    assert_eq!(settled(&domain, &dropped), 1);
}

/// The mistake that grace periods do not forgive: a reader can still find what is about to be
/// freed.
#[cfg(debug_assertions)]
#[test]
#[cfg_attr(miri, ignore = "undefined on purpose")]
fn an_object_that_is_retired_while_it_can_be_reached_is_found_by_the_next_reader() {
    let domain = Domain::new();
    let dropped = Arc::new(AtomicUsize::new(0));
    let value = Rcu::new_in(Fragile::new(&dropped, false), domain.clone());
    let option = RcuOption::new_in(Some(Fragile::new(&dropped, false)), domain.clone());
    let guard = domain.read();
    let objects = [value.load(&guard), option.load(&guard).unwrap()];
    let objects = objects.map(|object| std::ptr::from_ref(object).cast_mut());
    let retired = line!() + 3;
    for object in objects {
        // SAFETY: from a box; that readers still find it is the mistake, and the section keeps it.
        unsafe { raw::retire_with(&domain, object, size_of::<Fragile>(), end_fragile) };
    }
    let said = panic_of(|| _ = value.load(&guard));
    assert!(said.contains(&format!("{:p}", objects[0])), "{said}");
    assert!(said.contains(&format!("misuse.rs:{retired}:")), "{said}");
    assert!(panic_of(|| _ = option.load(&guard)).contains("can still be reached"));
    // To replace it now would free it twice, and is refused like any second retirement.
    assert!(panic_of(|| value.store(Fragile::new(&dropped, false))).contains("retired twice"));
    assert!(panic_of(|| option.store(None)).contains("retired twice"));
    // Now no thread finds them any more.
    assert!(!value.load(&guard).panics && option.load(&guard).is_none());
    drop(guard);
    assert_eq!(settled(&domain, &dropped), 2);
}
