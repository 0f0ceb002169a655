//! Hazard pointers: what is protected stays, what is not is freed, and what waits is bounded, seen
//! and freed at the end.

use crate::common::*;

use quiescence::hazard::{self, HazardDomain, HazardPointer};

fn boxed(live: &Arc<AtomicUsize>) -> Box<Counted> {
    Box::new(Counted::new(7, live))
}

/// A place of an object.
struct Place(AtomicPtr<Counted>);

impl Place {
    fn new(object: Box<Counted>) -> Self {
        Self(AtomicPtr::new(Box::into_raw(object)))
    }

    fn replace(&self, domain: &HazardDomain, object: Box<Counted>) {
        let old = self.0.swap(Box::into_raw(object), AcqRel);
        // SAFETY: from a box, and out of its place.
        unsafe { domain.retire_raw(old) };
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: from a box, and no thread reads the place any more.
        hazard::global().retire(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}

#[test]
fn what_is_protected_is_freed_later() {
    let (domain, live) = (HazardDomain::named("later"), Arc::default());
    let place = Place::new(boxed(&live));
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    place.replace(&domain, boxed(&live));
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((object.whole(), live.load(Relaxed)), (7, 2));
    assert_eq!((statistics.objects_protected, statistics.callbacks_waiting()), (1, 1));
    assert!(statistics.bytes_protected >= size_of::<Counted>() as u64);
    assert_eq!(statistics.bytes_waiting, statistics.bytes_protected);
    drop(object);
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((statistics.objects_protected, statistics.callbacks_waiting()), (0, 0));
    assert_eq!((live.load(Relaxed), statistics.bytes_waiting), (1, 0));
}

/// With no other call: the worker sees to it, also to what was protected at first.
#[test]
fn what_is_retired_is_freed_with_no_further_call() {
    let (domain, live) = (HazardDomain::new(), Arc::default());
    let place = Place::new(boxed(&live));
    place.replace(&domain, boxed(&live));
    until(|| live.load(Relaxed) == 1);
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    place.replace(&domain, boxed(&live));
    until(|| domain.statistics().objects_protected == 1);
    assert_eq!((object.whole(), live.load(Relaxed)), (7, 2));
    drop(object);
    until(|| live.load(Relaxed) == 1);
    until(|| domain.statistics().callbacks_waiting() == 0);
}

#[test]
fn a_holder_protects_what_it_was_pointed_at_last() {
    let (domain, live) = (HazardDomain::new(), Arc::default());
    let (one, other) = (Place::new(boxed(&live)), Place::new(boxed(&live)));
    let mut holder = HazardPointer::new();
    let none = AtomicPtr::<Counted>::new(ptr::null_mut());
    // SAFETY: null.
    assert!(unsafe { holder.protect(&none) }.is_none());
    let first = one.0.load(Acquire);
    // SAFETY: the places follow the protocol, here and below.
    let moved = unsafe { holder.try_protect(&other.0, first) };
    assert!(moved.is_err_and(|there| ptr::eq(there, other.0.load(Acquire))));
    // SAFETY: as above.
    let again = unsafe { holder.try_protect(&one.0, first) }.unwrap().unwrap();
    assert!(ptr::eq(again.as_ptr().as_ptr(), first));
    drop(again);
    // SAFETY: as above.
    drop(unsafe { holder.protect(&other.0) });
    one.replace(&domain, boxed(&live));
    domain.barrier();
    assert_eq!(live.load(Relaxed), 2);
    // A protection that is leaked lasts as long as its holder is not used again.
    // SAFETY: as above.
    std::mem::forget(unsafe { holder.protect(&one.0) });
    one.replace(&domain, boxed(&live));
    domain.barrier();
    assert_eq!(live.load(Relaxed), 3);
    drop(holder);
    domain.barrier();
    assert_eq!(live.load(Relaxed), 2);
}

#[test]
fn a_protected_object_outlives_its_domain() {
    let (domain, live) = (HazardDomain::new(), Arc::default());
    let place = Place::new(boxed(&live));
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    place.replace(&domain, boxed(&live));
    place.replace(&domain, boxed(&live));
    drop(domain);
    // The worker may have had the last handle for a moment.
    until(|| live.load(Relaxed) == 2);
    assert_eq!(object.whole(), 7);
    drop(object);
    until(|| {
        hazard::barrier();
        live.load(Relaxed) == 1
    });
}

/// Beside protections that last, and come and go.
#[test]
fn what_waits_stays_within_the_limit() {
    const MAX: u64 = 64;
    const ROUNDS: u64 = rounds(5_000, 200);
    let (domain, live) = (HazardDomain::new(), Arc::default());
    tune_hazards(&domain, |tuning| tuning.objects_max = MAX);
    let place = Place::new(boxed(&live));
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol, here and below.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    let most = AtomicU64::new(0);
    threads(3, |_| {
        let mut holder = HazardPointer::new();
        for _ in 0..ROUNDS {
            // SAFETY: as above.
            let seen = unsafe { holder.protect(&place.0) }.unwrap();
            assert_eq!(seen.whole(), 7);
            place.replace(&domain, boxed(&live));
            assert_eq!(seen.whole(), 7);
            most.fetch_max(domain.statistics().callbacks_waiting(), Relaxed);
        }
    });
    // Each thread may be in the midst of freeing a few, and protects one.
    assert!(most.load(Relaxed) <= 2 * MAX, "{} waited", most.load(Relaxed));
    assert_eq!(object.whole(), 7);
    drop(object);
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
    assert_eq!(live.load(Relaxed), 1);
}

/// An object of more than the whole limit, and no room: it is freed after a fence, unless it is
/// protected.
#[test]
fn an_object_that_finds_no_room_waits_while_it_is_protected() {
    let (domain, live) = (HazardDomain::new(), Arc::default());
    tune_hazards(&domain, |tuning| (tuning.objects_max, tuning.bytes_max) = (1, 1));
    let place = Place::new(boxed(&live));
    let mut holders = [HazardPointer::new(), HazardPointer::new()];
    let [first, second] = &mut holders;
    // SAFETY: the place follows the protocol, here and below.
    let first = unsafe { first.protect(&place.0) }.unwrap();
    place.replace(&domain, boxed(&live));
    // SAFETY: as above.
    let second = unsafe { second.protect(&place.0) }.unwrap();
    (0..10).for_each(|_| place.replace(&domain, boxed(&live)));
    domain.barrier();
    assert_eq!((first.whole(), second.whole(), live.load(Relaxed)), (7, 7, 3));
    drop((first, second));
    domain.barrier();
    assert_eq!(live.load(Relaxed), 1);
}

#[test]
fn threads_come_and_go_and_protections_move() {
    let (domain, live) = (HazardDomain::new(), Arc::default());
    let place = Place::new(boxed(&live));
    let replace = |_| || place.replace(&domain, boxed(&live));
    beside(1, replace, || {
        for _ in 0..rounds(100, 5) {
            let left = threads(4, |_| {
                let mut holder = Box::new(HazardPointer::new());
                let holder_of = &raw mut *holder;
                // SAFETY: in its box, which goes with what it protects.
                let holder_of = unsafe { &mut *holder_of };
                // SAFETY: the place follows the protocol.
                let object = unsafe { holder_of.protect(&place.0) }.unwrap();
                assert_eq!(object.whole(), 7);
                (object, holder)
            });
            left.iter().for_each(|(object, _)| _ = object.whole());
        }
    });
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
}

#[test]
fn a_barrier_while_something_is_freed_is_refused() {
    let refused = Arc::new(Mutex::new(None));
    let said = Arc::clone(&refused);
    let waits = move || *said.lock().unwrap() = Some(catch_unwind(hazard::barrier).is_err());
    hazard::global().retire(Box::new(OnDrop(waits)));
    until(|| {
        hazard::barrier();
        refused.lock().unwrap().is_some()
    });
    assert_eq!(*refused.lock().unwrap(), Some(true));
}

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "child processes")]
fn a_child_made_by_fork_protects_and_frees() {
    static DOMAIN: HazardDomain = HazardDomain::named("forked");
    let live = Arc::default();
    let place = Place::new(boxed(&live));
    place.replace(&DOMAIN, boxed(&live)); // the library's first use comes before a fork
    let replace = |_| {
        let (mut holder, place, live) = (HazardPointer::new(), &place, &live);
        move || {
            // SAFETY: the place follows the protocol, here and below.
            assert_eq!(unsafe { holder.protect(&place.0) }.unwrap().whole(), 7);
            place.replace(&DOMAIN, boxed(live));
        }
    };
    beside(1, replace, || {
        for _ in 0..20 {
            in_child(|| {
                let mut holder = HazardPointer::new();
                // SAFETY: as above.
                let object = unsafe { holder.protect(&place.0) }.unwrap();
                let before = live.load(Relaxed);
                place.replace(&DOMAIN, boxed(&live));
                place.replace(&DOMAIN, boxed(&live));
                DOMAIN.barrier();
                assert!(object.whole() == 7 && live.load(Relaxed) < before + 2);
                drop(object);
                DOMAIN.barrier();
                // What the other thread had in hand, and protected, may be there still.
                assert!(DOMAIN.statistics().objects_protected <= 1);
            });
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn what_waits_is_freed_at_the_end_of_the_process() {
    if role().is_none() {
        let said = ends_again(this_test!(), "child", 0);
        return assert!(said.contains("freed at the end"), "{said}");
    }
    tune_hazards(hazard::global(), |tuning| tuning.lazy = Duration::MAX);
    hazard::global().retire(Box::new(OnDrop(|| eprintln!("freed at the end"))));
    std::process::exit(0);
}

#[test]
fn all_of_this_holds_with_portable_fences() {
    again_in_a_process_with(&["hazard"], "QUIESCENCE_FENCES", "portable");
}
