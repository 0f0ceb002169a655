//! Objects that hazard pointers protected: one was freed at once where the user's `Weigh` panicked,
//! one that found no room was never looked for again, and those of a thread that protects what it
//! retires went over the limit without end.

use crate::common::*;
use quiescence::hazard::{self, HazardDomain, HazardPointer, Protected};
use quiescence::{ArcCell, cell::ArcGuard};

/// Counts its drop, and cannot be weighed, if it is to be so.
struct Flag(#[expect(dead_code)] Dropped, bool);

impl Weigh for Flag {
    fn owned(&self) -> usize {
        assert!(!self.1, "it cannot be weighed");
        0
    }
}

/// Retires an object while the holder protects it, and has been asked for it.
pub(crate) fn retire_protected<'h, T: Weigh + Send + 'static>(
    domain: &HazardDomain,
    holder: &'h mut HazardPointer,
    object: T,
) -> Protected<'h, T> {
    let protected = queue_protected(domain, holder, object);
    domain.barrier();
    protected
}

/// The same, and it waits for its grace period.
fn queue_protected<'h, T: Weigh + Send + 'static>(
    domain: &HazardDomain,
    holder: &'h mut HazardPointer,
    object: T,
) -> Protected<'h, T> {
    let place = AtomicPtr::new(Box::into_raw(Box::new(object)));
    // SAFETY: from a box, and retired below after it was taken out.
    let protected = unsafe { holder.protect(&place) }.expect("it is there");
    let old = place.swap(ptr::null_mut(), AcqRel);
    // SAFETY: from a box, and no thread finds it any more.
    domain.retire(unsafe { Box::from_raw(old) });
    protected
}

/// Whether there is room for an object where nothing waits: so nothing was charged for good.
fn has_room(domain: &HazardDomain) -> bool {
    let waits = domain.statistics().limit_waits;
    tune_hazards(domain, |tuning| tuning.objects_max = 1);
    domain.retire(Box::new(8));
    domain.statistics().limit_waits == waits
}

/// Retires an object while it is protected, and looks whether it is freed then, and
/// later with no further call.
fn is_freed_later(domain: &HazardDomain, panics: bool) {
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut holder = HazardPointer::new();
    let flag = Flag(Dropped(dropped.clone()), panics);
    let protected = retire_protected(domain, &mut holder, flag);
    assert_eq!(dropped.load(Acquire), 0, "freed while it is protected");
    drop(protected);
    until(|| dropped.load(Acquire) == 1);
}

#[test]
fn an_object_that_cannot_be_weighed_is_protected_all_the_same() {
    is_freed_later(&HazardDomain::new(), true);
}

#[test]
fn an_object_that_found_no_room_is_looked_for_by_the_worker() {
    let domain = HazardDomain::new();
    tune_hazards(&domain, |tuning| tuning.bytes_max = 1);
    is_freed_later(&domain, false);
}

/// What had been kept filled the limit until the worker's next tick, though it was protected no
/// more. So each of these went over the limit: thousands.
#[test]
fn what_a_thread_protects_while_it_retires_it_stays_within_the_limit() {
    const MAX: u64 = 64;
    let domain = HazardDomain::new();
    tune_hazards(&domain, |tuning| tuning.objects_max = MAX);
    let place = AtomicPtr::new(Box::into_raw(Box::new(0_u64)));
    let retire = |number| {
        let old = place.swap(Box::into_raw(Box::new(number)), AcqRel);
        // SAFETY: from a box, and no thread finds it any more.
        domain.retire(unsafe { Box::from_raw(old) });
    };
    let mut holders: Vec<_> = (0..MAX).map(|_| HazardPointer::new()).collect();
    let protections: Vec<_> = holders
        .iter_mut()
        .zip(1..)
        .map(|(holder, number)| {
            // SAFETY: from a box, and retired after it was taken out.
            let protected = unsafe { holder.protect(&place) };
            retire(number);
            protected
        })
        .collect();
    domain.barrier();
    assert_eq!(domain.statistics().objects_protected, MAX);
    drop(protections);
    let mut holder = HazardPointer::new();
    for number in 0..200 {
        // SAFETY: as above.
        let protected = unsafe { holder.protect(&place) };
        retire(number);
        let waiting = domain.statistics().callbacks_waiting();
        assert!(waiting <= MAX + 1, "{waiting} wait after {number}");
        drop(protected);
    }
    // SAFETY: as above.
    domain.retire(unsafe { Box::from_raw(place.into_inner()) });
}

/// The child counted what stood in the list and forgot as many as its thread had in hand, so that
/// nothing seemed to be left of what was protected still.
#[test]
#[cfg(target_os = "linux")]
fn what_is_protected_is_not_forgotten_where_a_drop_forks() {
    in_its_own_process!();
    let (domain, forks) = (HazardDomain::new(), ForksHere::new());
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut holder = HazardPointer::new();
    let protected = retire_protected(&domain, &mut holder, Dropped(dropped.clone()));
    assert_eq!(domain.statistics().objects_protected, 1);
    // Until no other thread, the worker say, is the one that drops it.
    while !forks.has_forked() {
        let (mut holder, forks) = (HazardPointer::new(), forks.clone());
        drop(retire_protected(&domain, &mut holder, OnDrop(move || forks.fork())));
        domain.barrier(); // also in the child
    }
    let is_kept = domain.statistics().objects_protected == 1 && dropped.load(Acquire) == 0;
    drop(protected);
    domain.barrier();
    let is_whole = is_kept && dropped.load(Acquire) == 1 && domain.statistics().bytes_waiting == 0;
    forks.assert_in_both(is_whole, "it is kept, and then dropped");
}

/// Where a drop forked, the child counted twice what had been found protected in the same go: as
/// kept, and as waiting in its queue, where the go had not finished. So its limit shrank for ever.
#[test]
#[cfg(target_os = "linux")]
fn what_is_found_protected_is_counted_once_where_the_next_drop_forks() {
    in_its_own_process!();
    let (domain, forks) = (HazardDomain::new(), ForksHere::new());
    // So few that no thread takes a stock: what is charged is what waits.
    tune_hazards(&domain, |tuning| tuning.objects_max = 200);
    // Until no other thread, the worker say, is the one that drops it.
    while !forks.has_forked() {
        let (mut holder, forks) = (HazardPointer::new(), forks.clone());
        let protected = queue_protected(&domain, &mut holder, 7);
        domain.retire(Box::new(OnDrop(move || forks.fork())));
        domain.barrier(); // its end also in the child
        assert_eq!(*protected, 7);
        drop(protected);
        domain.barrier();
    }
    forks.assert_in_both(has_room(&domain), "nothing waits, so there is room");
}

/// What is kept on both sides of a drop that panics is counted once, and forgotten once.
#[test]
fn what_is_protected_on_both_sides_of_a_panic_is_counted_once() {
    let (domain, dropped) = (HazardDomain::new(), Arc::new(AtomicUsize::new(0)));
    // So few that no thread takes a stock, as above.
    tune_hazards(&domain, |tuning| tuning.objects_max = 200);
    let mut holders = [HazardPointer::new(), HazardPointer::new()];
    let [before, behind] = &mut holders;
    let protections = (
        queue_protected(&domain, before, Dropped(dropped.clone())),
        domain.retire(Box::new(OnDrop(|| panic!("this drop panics, as it should in this test")))),
        queue_protected(&domain, behind, Dropped(dropped.clone())),
    );
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((statistics.objects_protected, statistics.callbacks_panicked), (2, 1));
    assert_eq!((dropped.load(Acquire), statistics.callbacks_waiting()), (0, 2));
    tune_hazards(&domain, |tuning| tuning.objects_max = 2);
    domain.retire(Box::new(8));
    let waits = domain.statistics().limit_waits - statistics.limit_waits;
    assert_eq!(waits, 1, "what is kept is charged");
    drop(protections);
    domain.barrier();
    let statistics = domain.statistics();
    assert_eq!((dropped.load(Acquire), statistics.objects_protected), (2, 0));
    assert_eq!((statistics.callbacks_waiting(), statistics.bytes_waiting), (0, 0));
    assert!(has_room(&domain));
}

/// Says that it owns so many bytes.
struct Vast(usize);

impl Weigh for Vast {
    fn owned(&self) -> usize {
        self.0
    }
}

/// An object that had waited for room in vain was charged the most that one object counts for, and
/// queued with the size that it said. What was given back was more, so others waited uncharged.
#[test]
fn a_size_beyond_all_reason_of_what_is_protected_is_given_back_as_it_was_charged() {
    for bytes in [1 << 50, usize::MAX] {
        let domain = HazardDomain::new();
        tune_hazards(&domain, |tuning| (tuning.objects_max, tuning.bytes_max) = (200, 1));
        let mut holders = [HazardPointer::new(), HazardPointer::new()];
        let [first, second] = &mut holders;
        // Alone, an object of any size is admitted; the second one is over the limit.
        let stays = retire_protected(&domain, first, Vast(1_000));
        let bytes_max = domain.statistics().bytes_waiting;
        drop(retire_protected(&domain, second, Vast(bytes)));
        domain.barrier();
        let statistics = domain.statistics();
        assert_eq!((statistics.objects_protected, statistics.bytes_waiting), (1, bytes_max));
        tune_hazards(&domain, |tuning| tuning.bytes_max = bytes_max);
        domain.retire(Box::new(8));
        let waits = domain.statistics().limit_waits - statistics.limit_waits;
        assert_eq!(waits, 1, "what is protected is not charged, beside {bytes} bytes");
        drop(stays);
        domain.barrier();
        let statistics = domain.statistics();
        assert_eq!((statistics.callbacks_waiting(), statistics.bytes_waiting), (0, 0));
        assert!(has_room(&domain), "{bytes} bytes");
    }
}

/// Each reference that a cell gave up to an object that a guard protects was kept: where a cell
/// went to and fro between two values beside a guard, they went over the limit without end.
#[test]
fn references_to_one_protected_object_stay_within_the_limit() {
    const MAX: u64 = 64;
    in_its_own_process!();
    tune_hazards(hazard::global(), |tuning| tuning.objects_max = MAX);
    let dropped = Arc::new(AtomicUsize::new(0));
    let cell = ArcCell::from_pointee(Dropped(dropped.clone()));
    let (protected, again) = (cell.load(), cell.load_full());
    for number in 0..20 * MAX {
        cell.store(Arc::new(Dropped(dropped.clone())));
        cell.store(Arc::clone(&again));
        let waiting = hazard::global().statistics().callbacks_waiting();
        assert!(waiting <= MAX + 1, "{waiting} wait after {number}");
    }
    hazard::barrier();
    // One that has waited in a queue, and one that found no room there.
    assert!((1..=2).contains(&hazard::global().statistics().objects_protected));
    assert!((3..=4).contains(&Arc::strong_count(&again)), "these, the cell's, and ours");
    // What is kept is the last of them.
    drop((cell, again));
    hazard::barrier();
    assert_eq!(dropped.load(Acquire) as u64, 20 * MAX);
    assert_eq!(ArcGuard::as_inner(&protected).0.load(Acquire) as u64, 20 * MAX);
    drop(protected);
    hazard::barrier();
    assert_eq!(dropped.load(Acquire) as u64, 20 * MAX + 1);
}

/// An object that found no room and was protected waited in its thread's queue once more. While
/// another thread was at a drop of that queue, such objects went over the limit without end.
#[test]
fn what_is_protected_stays_within_the_limit_beside_a_drop_that_takes_long() {
    const MAX: u64 = 64;
    in_its_own_process!();
    let domain = hazard::global();
    tune_hazards(domain, |tuning| tuning.objects_max = MAX);
    let (blocks, entered, leave) = gate();
    let blocks = Mutex::new(blocks);
    domain.retire(Box::new(OnDrop(move || blocks.lock().unwrap()())));
    entered.recv().unwrap(); // on the worker
    let cell = ArcCell::from_pointee(0);
    let (protected, again) = (cell.load(), cell.load_full());
    for number in 0..20 * MAX {
        cell.store(Arc::new(1));
        cell.store(Arc::clone(&again));
        let waiting = domain.statistics().callbacks_waiting();
        assert!(waiting <= MAX + 1, "{waiting} wait after {number}");
    }
    drop((leave, cell));
    hazard::barrier();
    assert!(*protected == 0 && (2..=3).contains(&Arc::strong_count(&again)), "as above");
    drop(protected);
    hazard::barrier();
    assert_eq!((Arc::strong_count(&again), domain.statistics().bytes_waiting), (1, 0));
}
