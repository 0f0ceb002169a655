//! `epoch`: what programs written for crossbeam-epoch rely on, and the limit, which they have not.

use crate::common::*;
use std::mem::MaybeUninit;

use quiescence::epoch::{self, Atomic, Collector, Guard, LocalHandle, Owned, Pointable, Shared};

fn defer_counted(guard: &Guard, drops: &Arc<AtomicUsize>) {
    let object = Owned::new(Dropped(Arc::clone(drops))).into_shared(guard);
    // SAFETY: no other thread knows of it.
    unsafe { guard.defer_destroy(object) };
}

/// A collector whose callbacks the worker leaves to flushes, a handle, and a count of drops.
fn lone() -> (Collector, LocalHandle, Arc<AtomicUsize>) {
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.lazy = Duration::MAX);
    let collector = Collector::new_in(domain);
    let handle = collector.register();
    (collector, handle, Arc::default())
}

#[test]
fn guards_outlive_their_handle_and_collector() {
    let collector = Collector::new();
    let (handle, other) = (collector.register(), collector.register());
    assert_eq!((handle.collector(), handle.is_pinned()), (&collector, false));
    let guard = handle.pin();
    assert!(handle.is_pinned() && !other.is_pinned());
    drop((handle, other));
    assert_eq!(guard.collector(), Some(&collector));
    let drops = Arc::new(AtomicUsize::new(0));
    defer_counted(&guard, &drops);
    drop(collector);
    assert_eq!(drops.load(SeqCst), 0);
    drop(guard);
    assert_eq!(drops.load(SeqCst), 1, "the last of all is gone");
}

/// They share the section that the first of them began, in whatever order they go.
#[test]
fn guards_of_a_handle_pin_until_the_last_one_goes() {
    let domain = Domain::new();
    let handle = Collector::new_in(domain.clone()).register();
    let mut guards: Vec<_> = (0..3).map(|_| handle.pin()).collect();
    let cookie = domain.start_poll();
    let is_over = || (0..10).any(|_| domain.poll(cookie));
    drop(guards.remove(0));
    assert!(!is_over());
    guards[0].repin_after(|| assert!(handle.is_pinned() && !is_over()));
    guards[0].repin();
    assert!(!is_over());
    guards[1].flush(); // which is due at its end
    drop(guards.remove(1));
    assert!(handle.is_pinned() && !is_over());
    drop(guards);
    domain.wait(cookie);
    assert!(!handle.is_pinned());
}

/// What is run when the last guard goes may drop the handle.
#[test]
fn a_handle_that_goes_at_the_end_of_its_last_guard_is_registered_until_then() {
    thread_local! {
        static HANDLE: RefCell<Option<LocalHandle>> = const { RefCell::new(None) };
    }
    let domain = domain_with_limit(1, 1 << 20);
    tune(&domain, |tuning| tuning.lazy = Duration::MAX);
    let handle = Collector::new_in(domain.clone()).register();
    let guard = handle.pin();
    HANDLE.set(Some(handle));
    let (inside, readers) = (domain.clone(), Arc::new(AtomicU64::new(0)));
    let seen = Arc::clone(&readers);
    guard.defer(move || {
        drop(HANDLE.take());
        seen.store(inside.statistics().readers, SeqCst);
    });
    guard.defer(|| {}); // over the limit
    drop(guard);
    drop(HANDLE.take()); // where the worker was faster
    assert_eq!((readers.load(SeqCst), domain.statistics().readers), (1, 0));
}

#[test]
fn collectors_are_told_apart() {
    let (one, other) = (Collector::new(), Collector::default());
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_ne!(&one, epoch::default_collector());
    let handle = epoch::default_collector().register();
    for pin in [&epoch::pin as &dyn Fn() -> Guard, &|| handle.pin()] {
        assert!(!epoch::is_pinned());
        let guard = pin();
        assert_eq!(guard.collector(), Some(epoch::default_collector()));
        assert!(epoch::is_pinned());
        drop(guard);
    }
    assert!(!epoch::is_pinned());
}

/// Two flushes, each under a guard of its own, are what tests of structures wait for: they run what
/// this thread has deferred, and then what a thread has that has ended.
#[test]
fn flushes_of_a_lone_thread_run_all() {
    let (collector, handle, drops) = lone();
    let guard = handle.pin();
    (0..8).for_each(|_| defer_counted(&guard, &drops));
    assert_eq!(drops.load(SeqCst), 0);
    drop(guard);
    (0..2).for_each(|_| handle.pin().flush());
    assert_eq!(drops.load(SeqCst), 8);
    elsewhere(|| defer_counted(&collector.register().pin(), &drops));
    (0..2).for_each(|_| handle.pin().flush());
    assert_eq!(drops.load(SeqCst), 9);
}

/// As many as tests of structures make, beside an idle thread. They left it to the worker where
/// another thread was registered; and counted together, each 64th flush was the other collector's.
#[test]
fn as_many_flushes_of_two_collectors_by_turns_run_all_of_both() {
    let [(one, first, drops), (other, second, others)] = [lone(), lone()];
    let idle = || {
        let handles = [one.register(), other.register()];
        handles.iter().for_each(|handle| drop(handle.pin()));
        handles
    };
    while_held(idle, |_| {
        defer_counted(&first.pin(), &drops);
        for _ in 0..128 {
            first.pin().flush();
            defer_counted(&second.pin(), &others);
            second.pin().flush();
        }
        assert_eq!(drops.load(SeqCst), 1);
        assert_ne!(others.load(SeqCst), 0);
    });
}

#[test]
fn closures_of_all_sizes_run_once() {
    let sum = Arc::new(AtomicUsize::new(0));
    let collector = Collector::new();
    {
        let handle = collector.register();
        let guard = handle.pin();
        let small = Arc::clone(&sum);
        guard.defer(move || small.fetch_add(1, SeqCst));
        let (large, numbers) = (Arc::clone(&sum), [1_usize; 20]);
        guard.defer(move || large.fetch_add(numbers.iter().sum(), SeqCst));
        static EMPTY: AtomicUsize = AtomicUsize::new(0);
        guard.defer(|| EMPTY.fetch_add(1, SeqCst));
        #[repr(align(64))]
        struct Aligned(Arc<AtomicUsize>);
        let aligned = Aligned(Arc::clone(&sum));
        guard.defer(move || {
            let aligned = aligned;
            assert_eq!((&raw const aligned).addr() % 64, 0);
            aligned.0.fetch_add(300, SeqCst);
        });
        drop(guard);
        drop((handle, collector));
        assert_eq!(EMPTY.load(SeqCst), 1);
    }
    assert_eq!(sum.load(SeqCst), 321);
    assert_eq!(Arc::strong_count(&sum), 1, "what they had is dropped");
}

#[test]
fn a_deferred_function_may_defer() {
    fn again(collector: Collector, left: usize, ran: Arc<AtomicUsize>) {
        ran.fetch_add(1, SeqCst);
        if left != 0 {
            let handle = collector.register();
            let guard = handle.pin();
            guard.defer(move || again(collector, left - 1, ran));
            guard.flush();
        }
    }
    let ran = Arc::new(AtomicUsize::new(0));
    let collector = Collector::new();
    again(collector.clone(), 5, Arc::clone(&ran));
    let handle = collector.register();
    while ran.load(SeqCst) != 6 {
        handle.pin().flush();
    }
}

#[test]
fn a_panic_stays_in_the_deferred_function() {
    let domain = Domain::new();
    Collector::new_in(domain.clone()).register().pin().defer(|| panic!("on purpose"));
    domain.barrier();
    assert_eq!(domain.statistics().callbacks_panicked, 1);
}

#[test]
fn repin_lets_go_of_what_was_seen() {
    let (_, handle, drops) = lone();
    let mut guard = handle.pin();
    defer_counted(&guard, &drops);
    guard.flush();
    while drops.load(SeqCst) == 0 {
        guard.repin();
        guard.flush();
    }
    // Not where another guard lives.
    let inner = handle.pin();
    defer_counted(&guard, &drops);
    guard.flush();
    guard.repin();
    assert_eq!(drops.load(SeqCst), 1);
    drop(inner);
    guard.repin();
    guard.flush();
    drop(guard);
    assert_eq!(drops.load(SeqCst), 2);
}

#[test]
fn repin_after_pins_anew_also_after_a_panic() {
    let (collector, handle, drops) = lone();
    let mut guard = handle.pin();
    let seen = guard.repin_after(|| handle.is_pinned());
    assert!(!seen && handle.is_pinned());
    panic_of(|| guard.repin_after(|| panic!("on purpose")));
    assert!(handle.is_pinned());
    elsewhere(|| {
        let guard = collector.register().pin();
        defer_counted(&guard, &drops);
        guard.flush();
    });
    assert_eq!(drops.load(SeqCst), 0, "it is pinned");
    drop(guard);
    assert!(!handle.is_pinned());
    // The handle may go while the guard is unpinned.
    let mut guard = handle.pin();
    guard.repin_after(|| drop(handle));
    assert!(guard.collector() == Some(&collector));
}

/// A past error: the place was one in the library.
#[test]
fn the_section_of_a_guard_that_pins_anew_began_where_that_was_called() {
    elsewhere(|| {
        let domain = Domain::new();
        let handle = Collector::new_in(domain.clone()).register();
        let (mut own, mut global) = (handle.pin(), epoch::pin());
        let began_here = || {
            let seen = format!("{:?} {:?}", domain.read(), quiescence::read());
            assert_eq!(seen.matches("epoch.rs").count(), 2, "{seen}");
        };
        began_here();
        own.repin_after(|| ());
        global.repin_after(|| ());
        began_here();
        own.repin();
        global.repin();
        began_here();
    });
}

#[test]
fn unprotected_runs_at_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    // SAFETY: no other thread is in sight.
    let guard = unsafe { epoch::unprotected() };
    defer_counted(guard, &drops);
    assert_eq!(drops.load(SeqCst), 1);
    guard.defer(|| {});
    guard.flush();
    assert!(guard.collector().is_none());
}

#[test]
fn tags_are_below_the_alignment() {
    let guard = &epoch::pin();
    let pointer = Owned::new(7_u64).with_tag(0b1_0011).into_shared(guard);
    assert_eq!((pointer.tag(), pointer.with_tag(5).tag()), (3, 5));
    let place = Atomic::from(pointer);
    assert_eq!(place.fetch_or(4, AcqRel, guard).tag(), 3);
    assert_eq!(place.fetch_and(6, AcqRel, guard).tag(), 7);
    assert_eq!(place.fetch_xor(1, AcqRel, guard).tag(), 6);
    let seen = place.load(Acquire, guard);
    assert_eq!((seen.tag(), seen.as_raw()), (7, pointer.as_raw()));
    assert_eq!(place.load_consume(guard), seen);
    // SAFETY: it lives.
    assert_eq!(unsafe { seen.deref() }, &7);
    // SAFETY: owned by none but this.
    assert_eq!(*unsafe { place.into_owned() }.into_box(), 7);
    // A byte leaves no room for a tag.
    assert_eq!(Owned::new(1_u8).with_tag(1).tag(), 0);
    assert!(Shared::<u64>::null().with_tag(1).is_null());
}

#[test]
fn exchanges_give_back_what_was_not_taken() {
    let guard = &epoch::pin();
    let drops = Arc::new(AtomicUsize::new(0));
    let place = Atomic::new(Dropped(Arc::clone(&drops)));
    let old = place.load(Acquire, guard);
    let new = Owned::new(Dropped(Arc::clone(&drops)));
    let error = place.compare_exchange(Shared::null(), new, AcqRel, Acquire, guard).unwrap_err();
    assert!(error.current == old && drops.load(SeqCst) == 0);
    let now = place.compare_exchange(old, error.new, AcqRel, Acquire, guard).unwrap();
    assert!(now == place.load(Acquire, guard));
    let updated = place.fetch_update(AcqRel, Acquire, guard, |seen| Some(seen.with_tag(1)));
    assert!(updated == Ok(now) && place.load(Relaxed, guard).tag() == 1);
    assert!(place.fetch_update(AcqRel, Acquire, guard, |_| None).is_err());
    let last = place.swap(Shared::null(), AcqRel, guard);
    for ours in [old, last] {
        // SAFETY: no other pointer leads to it.
        drop(unsafe { ours.into_owned() });
    }
    assert_eq!(drops.load(SeqCst), 2);
    assert!(place.load(Relaxed, guard).is_null());
}

#[test]
#[expect(deprecated)]
fn older_names_do_the_same() {
    let guard = &epoch::pin();
    let place = Atomic::<u64>::null();
    place.compare_and_set(Shared::null(), Owned::new(1), AcqRel, guard).unwrap();
    let one = place.load(Acquire, guard);
    let orders = (Release, Relaxed);
    assert!(place.compare_and_set(Shared::null(), Owned::new(2), orders, guard).is_err());
    while place.compare_and_set_weak(one, Shared::null(), SeqCst, guard).is_err() {}
    // SAFETY: ours alone.
    drop(unsafe { one.into_owned() });
}

#[test]
fn arrays_know_their_length() {
    let collector = Collector::new();
    let handle = collector.register();
    for len in [0, 1, 1_000] {
        let mut array = Owned::<[MaybeUninit<u16>]>::init(len);
        assert_eq!(array.len(), len);
        array.iter_mut().enumerate().for_each(|(at, element)| _ = element.write(at as u16));
        let guard = handle.pin();
        let place = Atomic::<[MaybeUninit<u16>]>::from(array);
        let shared = place.load(Acquire, &guard);
        // SAFETY: written above, and unlinked nowhere.
        let written = unsafe { shared.deref() }.iter().map(|element| unsafe { *element.as_ptr() });
        assert!(written.eq(0..len as u16));
        // SAFETY: no other thread knows of it.
        unsafe { guard.defer_destroy(shared) };
    }
    assert_eq!(<[MaybeUninit<u16>] as Pointable>::ALIGN, align_of::<usize>());
    #[repr(align(32))]
    struct Wide;
    assert_eq!(<[MaybeUninit<Wide>] as Pointable>::ALIGN, 32);
    let wide = Owned::<[MaybeUninit<Wide>]>::init(3).with_tag(31);
    assert_eq!((wide.tag(), wide.len(), wide.as_ptr().addr() % 32), (31, 3, 0));
}

#[test]
#[should_panic(expected = "unaligned pointer")]
fn an_unaligned_pointer_is_refused() {
    let _pointer = Shared::from(std::ptr::without_provenance::<u64>(1));
}

/// Destructors of thread-locals pin as well, also after the library's own have run.
#[test]
fn a_thread_that_ends_may_pin() {
    let drops = Arc::new(AtomicUsize::new(0));
    for pins_before in [false, true] {
        let (pin, counted) = (|| epoch::pin().defer(|| {}), Arc::clone(&drops));
        elsewhere(move || {
            if pins_before {
                pin();
            }
            at_thread_end(move || {
                defer_counted(&epoch::pin(), &counted);
                defer_counted(&Collector::new().register().pin(), &counted);
            });
            pin();
        });
    }
    while drops.load(SeqCst) != 4 {
        quiescence::barrier();
    }
}

/// crossbeam-rs/crossbeam#566: while a thread is pinned, memory of the others grew without end.
#[test]
fn beside_a_pinned_thread_what_waits_keeps_the_limit() {
    const OBJECTS: u64 = 100;
    let domain = domain_with_limit(OBJECTS, 1 << 20);
    let drops = Arc::new(AtomicUsize::new(0));
    let count = rounds(2_000, 300);
    let threads = beside_a_section(&domain, |leave| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (collector, drops) = (Collector::new_in(domain.clone()), Arc::clone(&drops));
                thread::spawn(move || {
                    let handle = collector.register();
                    (0..count).for_each(|_| defer_counted(&handle.pin(), &drops));
                })
            })
            .collect();
        until(|| domain.statistics().limit_overruns >= 2);
        // Each waits at the end of a guard, with one object over the limit.
        let statistics = domain.statistics();
        assert!(statistics.callbacks_waiting() <= OBJECTS + 2, "{statistics:?}");
        assert_eq!(drops.load(SeqCst), 0);
        leave();
        threads
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(settled(&domain, &drops), 2 * count);
}

/// Without another thread in the way a thread drops itself what it has deferred, as it continues,
/// also where the worker does not come.
#[test]
fn a_thread_runs_what_it_has_deferred() {
    thread_local! {
        static HERE: AtomicUsize = const { AtomicUsize::new(0) };
    }
    struct Here;
    impl Drop for Here {
        fn drop(&mut self) {
            HERE.with(|here| here.fetch_add(1, Relaxed));
        }
    }
    let domain = domain_with_limit(400, 1 << 20);
    let _busy = occupy_the_worker();
    let handle = Collector::new_in(domain.clone()).register();
    let count = rounds(10_000, 500);
    for _ in 0..count {
        let guard = handle.pin();
        let object = Owned::new(Here).into_shared(&guard);
        // SAFETY: no other thread knows of it.
        unsafe { guard.defer_destroy(object) };
    }
    let here = HERE.with(|here| here.load(Relaxed)) as u64;
    assert_eq!(here + domain.statistics().callbacks_waiting(), count);
    assert!(here >= count - 400, "{here} of {count}");
}
