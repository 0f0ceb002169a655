//! Hazard pointers: what is protected stays, what is not is freed, and what waits is bounded, seen
//! and freed at the end.

use crate::common::*;

use quiescence::hazard::{self, HazardDomain, HazardPointer};

const MARK: u64 = 0x600d_600d_600d_600d;

/// Knows whether it has been dropped.
struct Object {
    mark: u64,
    drops: &'static AtomicU64,
}

impl Weigh for Object {}

impl Object {
    fn boxed(drops: &'static AtomicU64) -> Box<Self> {
        Box::new(Self { mark: MARK, drops })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        assert_eq!(self.mark, MARK, "dropped twice");
        self.mark = 0;
        self.drops.fetch_add(1, Relaxed);
    }
}

fn count() -> &'static AtomicU64 {
    /// So that none of them is taken for a leak.
    static COUNTS: Mutex<Vec<&'static AtomicU64>> = Mutex::new(Vec::new());
    let count = Box::leak(Box::default());
    COUNTS.lock().unwrap().push(count);
    count
}

/// A place of an object.
struct Place(AtomicPtr<Object>);

impl Place {
    fn new(object: Box<Object>) -> Self {
        Self(AtomicPtr::new(Box::into_raw(object)))
    }

    fn replace(&self, domain: &HazardDomain, object: Box<Object>) {
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
    let (domain, drops) = (HazardDomain::named("later"), count());
    let place = Place::new(Object::boxed(drops));
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    place.replace(&domain, Object::boxed(drops));
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((object.mark, drops.load(Relaxed)), (MARK, 0));
    assert_eq!((statistics.objects_protected, statistics.callbacks_waiting()), (1, 1));
    assert!(statistics.bytes_protected >= size_of::<Object>() as u64);
    assert_eq!(statistics.bytes_waiting, statistics.bytes_protected);
    drop(object);
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((statistics.objects_protected, statistics.callbacks_waiting()), (0, 0));
    assert_eq!((drops.load(Relaxed), statistics.bytes_waiting), (1, 0));
}

/// With no other call: the worker sees to it, also to what was protected at first.
#[test]
fn what_is_retired_is_freed_with_no_further_call() {
    let (domain, drops) = (HazardDomain::new(), count());
    let place = Place::new(Object::boxed(drops));
    place.replace(&domain, Object::boxed(drops));
    until(|| drops.load(Relaxed) == 1);
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    place.replace(&domain, Object::boxed(drops));
    until(|| domain.statistics().objects_protected == 1);
    assert_eq!((object.mark, drops.load(Relaxed)), (MARK, 1));
    drop(object);
    until(|| drops.load(Relaxed) == 2);
    until(|| domain.statistics().callbacks_waiting() == 0);
}

#[test]
fn a_holder_protects_what_it_was_pointed_at_last() {
    let (domain, drops) = (HazardDomain::new(), count());
    let (one, other) = (Place::new(Object::boxed(drops)), Place::new(Object::boxed(drops)));
    let mut holder = HazardPointer::new();
    let none = AtomicPtr::<Object>::new(ptr::null_mut());
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
    one.replace(&domain, Object::boxed(drops));
    domain.barrier();
    assert_eq!(drops.load(Relaxed), 1);
    // A protection that is leaked lasts as long as its holder is not used again.
    // SAFETY: as above.
    std::mem::forget(unsafe { holder.protect(&one.0) });
    one.replace(&domain, Object::boxed(drops));
    domain.barrier();
    assert_eq!(drops.load(Relaxed), 1);
    drop(holder);
    domain.barrier();
    assert_eq!(drops.load(Relaxed), 2);
}

#[test]
fn a_protected_object_outlives_its_domain() {
    let (domain, drops) = (HazardDomain::new(), count());
    let place = Place::new(Object::boxed(drops));
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    place.replace(&domain, Object::boxed(drops));
    place.replace(&domain, Object::boxed(drops));
    drop(domain);
    // The worker may have had the last handle for a moment.
    until(|| drops.load(Relaxed) == 1);
    assert_eq!(object.mark, MARK);
    drop(object);
    until(|| {
        hazard::barrier();
        drops.load(Relaxed) == 2
    });
}

/// Beside protections that last, and come and go.
#[test]
fn what_waits_stays_within_the_limit() {
    const MAX: u64 = 64;
    const ROUNDS: u64 = rounds(5_000, 200);
    let (domain, drops) = (HazardDomain::new(), count());
    tune_hazards(&domain, |tuning| tuning.objects_max = MAX);
    let place = Place::new(Object::boxed(drops));
    let mut holder = HazardPointer::new();
    // SAFETY: the place follows the protocol, here and below.
    let object = unsafe { holder.protect(&place.0) }.unwrap();
    let most = AtomicU64::new(0);
    threads(3, |_| {
        let mut holder = HazardPointer::new();
        for _ in 0..ROUNDS {
            // SAFETY: as above.
            let seen = unsafe { holder.protect(&place.0) }.unwrap();
            assert_eq!(seen.mark, MARK);
            place.replace(&domain, Object::boxed(drops));
            assert_eq!(seen.mark, MARK);
            most.fetch_max(domain.statistics().callbacks_waiting(), Relaxed);
        }
    });
    // Each thread may be in the midst of freeing a few, and protects one.
    assert!(most.load(Relaxed) <= 2 * MAX, "{} waited", most.load(Relaxed));
    assert_eq!(object.mark, MARK);
    drop(object);
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_waiting(), 0);
    assert_eq!(drops.load(Relaxed), 3 * ROUNDS);
}

/// An object of more than the whole limit, and no room: it is freed after a fence, unless it is
/// protected.
#[test]
fn an_object_that_finds_no_room_waits_while_it_is_protected() {
    let (domain, drops) = (HazardDomain::new(), count());
    tune_hazards(&domain, |tuning| (tuning.objects_max, tuning.bytes_max) = (1, 1));
    let place = Place::new(Object::boxed(drops));
    let mut holders = [HazardPointer::new(), HazardPointer::new()];
    let [first, second] = &mut holders;
    // SAFETY: the place follows the protocol, here and below.
    let first = unsafe { first.protect(&place.0) }.unwrap();
    place.replace(&domain, Object::boxed(drops));
    // SAFETY: as above.
    let second = unsafe { second.protect(&place.0) }.unwrap();
    (0..10).for_each(|_| place.replace(&domain, Object::boxed(drops)));
    domain.barrier();
    assert_eq!((first.mark, second.mark, drops.load(Relaxed)), (MARK, MARK, 9));
    drop((first, second));
    domain.barrier();
    assert_eq!(drops.load(Relaxed), 11);
}

#[test]
fn threads_come_and_go_and_protections_move() {
    let (domain, drops) = (HazardDomain::new(), count());
    let place = Place::new(Object::boxed(drops));
    let replace = |_| || place.replace(&domain, Object::boxed(drops));
    beside(1, replace, || {
        for _ in 0..rounds(100, 5) {
            let left = threads(4, |_| {
                let mut holder = Box::new(HazardPointer::new());
                let holder_of = &raw mut *holder;
                // SAFETY: in its box, which goes with what it protects.
                let holder_of = unsafe { &mut *holder_of };
                // SAFETY: the place follows the protocol.
                let object = unsafe { holder_of.protect(&place.0) }.unwrap();
                assert_eq!(object.mark, MARK);
                (object, holder)
            });
            assert!(left.iter().all(|(object, _)| object.mark == MARK));
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
    let drops = count();
    let place = Place::new(Object::boxed(drops));
    place.replace(&DOMAIN, Object::boxed(drops)); // the library's first use comes before a fork
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut holder = HazardPointer::new();
            while !stop.load(Relaxed) {
                // SAFETY: the place follows the protocol, here and below.
                assert_eq!(unsafe { holder.protect(&place.0) }.unwrap().mark, MARK);
                place.replace(&DOMAIN, Object::boxed(drops));
            }
        });
        for _ in 0..20 {
            in_child(|| {
                let mut holder = HazardPointer::new();
                // SAFETY: as above.
                let object = unsafe { holder.protect(&place.0) }.unwrap();
                let before = drops.load(Relaxed);
                place.replace(&DOMAIN, Object::boxed(drops));
                place.replace(&DOMAIN, Object::boxed(drops));
                DOMAIN.barrier();
                assert!(object.mark == MARK && drops.load(Relaxed) > before);
                drop(object);
                DOMAIN.barrier();
                // What the other thread had in hand, and protected, may be there still.
                assert!(DOMAIN.statistics().objects_protected <= 1);
            });
        }
        stop.store(true, Relaxed);
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
    storm::again_in_a_process_with(&["hazard"], "QUIESCENCE_FENCES", "portable");
}
