//! `Snapshot`: values of all kinds, whole, under updaters and signals, on both paths.

use crate::common::*;
use std::num::NonZeroU32;

use quiescence::cell::Snapshot;
#[cfg(unix)]
use quiescence::tuning::PerCpuPath;

#[cfg(unix)]
use storm::Target;

#[test]
fn what_is_stored_is_loaded() {
    let snapshot = Snapshot::new(1_u32);
    assert_eq!(snapshot.load(), 1);
    snapshot.store(2);
    assert_eq!(snapshot.swap(3), 2);
    assert_eq!(snapshot.update(|old| old * 10), 3);
    assert_eq!(format!("{snapshot:?}"), "Snapshot(30)");
    let mut snapshot = snapshot;
    *snapshot.get_mut() += 1;
    assert_eq!(snapshot.load(), 31);
    assert_eq!(snapshot.into_inner(), 31);
    assert_eq!(Snapshot::<u64>::default().load(), 0);
    assert_eq!(Snapshot::from('x').load(), 'x');
}

/// Bytes in any number, as far as the biggest class.
fn bytes<const N: usize>(random: &mut Random) {
    if cfg!(miri) && N > 129 {
        return;
    }
    let mut value = || [(); N].map(|()| random.next() as u8);
    let first = value();
    let snapshot = Snapshot::new(first);
    assert_eq!(snapshot.load(), first, "{N}");
    for _ in 0..3 {
        let new = value();
        snapshot.store(new);
        assert_eq!(snapshot.load(), new, "{N}");
    }
}

#[test]
fn values_of_every_size_come_back_as_they_were() {
    let random = &mut Random(0x5eed);
    macro_rules! all {
        ($($n:literal)*) => { $(bytes::<$n>(random);)* };
    }
    // Every number of words with an arm of its own, one byte less, and one more.
    all!(0 1 2 3 4 5 6 7 8 9 15 16 17 23 24 25 31 32 33 39 40 41 47 48 49 55 56 57 63 64 65);
    all!(71 72 73 79 80 81 87 88 89 95 96 97 103 104 105 111 112 113 119 120 121 127 128 129);
    all!(159 160 161 191 192 193 223 224 225 255 256 257 319 320 321 383 384 385 447 448 449);
    all!(511 512 513 639 640 641 767 768 769 895 896 897 1023 1024 1025 1279 1280 1281);
    all!(1535 1536 1537 1791 1792 1793 2047 2048 2049 2560 3072 3584 4095 4096 4097);
    all!(5120 6144 7168 8191 8192);
}

#[test]
fn values_with_padding_niches_and_pointers_come_back_as_they_were() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Padded {
        small: u8,
        big: u64,
        last: u16,
    }
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(64))]
    struct Wide(u8);
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Nothing;

    let padded = Padded { small: 1, big: u64::MAX, last: 3 };
    let snapshot = Snapshot::new(padded);
    assert_eq!(snapshot.load(), padded);
    let mut wide = Snapshot::new(Wide(1));
    wide.store(Wide(2));
    assert_eq!(wide.load(), Wide(2));
    assert_eq!(std::ptr::from_mut(wide.get_mut()).align_offset(64), 0);
    let nothing = Snapshot::new(Nothing);
    nothing.store(Nothing);
    assert_eq!(nothing.load(), Nothing);
    let flag = Snapshot::new(None::<bool>);
    for value in [Some(true), Some(false), None] {
        flag.store(value);
        assert_eq!(flag.load(), value);
    }
    let number = Snapshot::new(NonZeroU32::new(7));
    assert_eq!(number.swap(None), NonZeroU32::new(7));
    assert_eq!(number.load(), None);
    let float = Snapshot::new(-0.0_f64);
    assert!(float.load().is_sign_negative());
    float.store(f64::NAN);
    assert!(float.load().is_nan());
    let text = Snapshot::new("first");
    text.store("second");
    assert_eq!(text.load(), "second");
    let function = Snapshot::new(u64::wrapping_add as fn(u64, u64) -> u64);
    function.store(u64::wrapping_mul);
    assert_eq!(function.load()(6, 7), 42);
}

/// Threads that store `[n; 4]`, with one that adds, and readers that see nothing else.
fn readers_beside_updaters(readers: usize, updaters: usize, updates: u64) {
    let snapshot = Snapshot::new([0_u64; 4]);
    let loads = AtomicU64::new(0);
    let read = |_| {
        let (mut last, snapshot, loads) = (0, &snapshot, &loads);
        move || {
            let seen = snapshot.load();
            assert_eq!(seen, [seen[0]; 4], "torn");
            assert!(seen[0] >= last, "the value went back");
            last = seen[0];
            loads.fetch_add(1, Relaxed);
        }
    };
    let update = |_| (0..updates).for_each(|_| _ = snapshot.update(|[n, ..]| [n + 1; 4]));
    beside(readers, read, || {
        threads(updaters, update);
        until(|| readers == 0 || loads.load(Relaxed) != 0);
    });
    assert_eq!(snapshot.into_inner(), [updates * updaters as u64; 4], "an update was lost");
}

#[test]
fn loads_are_whole_and_no_update_is_lost() {
    for (readers, updaters, updates) in [(4, 3, 1_000), (0, 4, 2_000), (6, 1, 3_000)] {
        readers_beside_updaters(readers, updaters, rounds(updates, 9));
    }
}

#[test]
fn big_values_are_whole_too() {
    /// As many as a snapshot may have: a load takes as long as a store without its barrier.
    const WORDS: usize = if cfg!(miri) { 600 } else { 1024 };
    let snapshot = Snapshot::new([0_u64; WORDS]);
    let (loads, torn) = (AtomicU64::new(0), AtomicBool::new(false));
    let read = |_| {
        || {
            let seen = snapshot.load();
            torn.fetch_or(seen.iter().any(|word| *word != seen[0]), Relaxed);
            loads.fetch_add(1, Relaxed);
        }
    };
    beside(3, read, || {
        // As long as it takes for loads to come in between: an updater by itself is done before
        // readers have begun.
        let (updates, enough) = (rounds(30_000, 8), rounds(300_000, 24));
        let mut update = 0;
        while update < updates || loads.load(Relaxed) < enough {
            snapshot.store([update; WORDS]);
            assert_eq!(snapshot.load()[WORDS - 1], update, "a thread reads what it stored");
            update += 1;
        }
    });
    assert!(!torn.into_inner(), "torn");
}

#[test]
fn an_update_may_be_abandoned_and_nested() {
    let snapshot = Snapshot::new(1);
    panic_of(|| snapshot.update(|_| panic!("no new value")));
    assert_eq!(snapshot.load(), 1);
    begins_anew(&snapshot, || snapshot.store(10), |seen| seen + 1);
    assert_eq!(snapshot.load(), 11);
}

#[test]
fn a_value_that_comes_back_is_a_change_all_the_same() {
    // The buffer of the first value is the one that the third is in.
    let snapshot = Snapshot::new([1; 8]);
    let change = || [2, 3].into_iter().for_each(|value| snapshot.store([value; 8]));
    begins_anew(&snapshot, change, |seen| [seen[0] + 1; 8]);
    assert_eq!(snapshot.load(), [4; 8]);
}

/// An update in whose midst the value changes calls its function once more.
fn begins_anew<T: Copy + Send + Sync + 'static>(
    snapshot: &Snapshot<T>,
    change: impl Fn(),
    next: impl Fn(T) -> T,
) {
    let mut calls = 0;
    snapshot.update(|seen| {
        calls += 1;
        if calls == 1 {
            change();
        }
        next(seen)
    });
    assert_eq!(calls, 2);
}

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "signals")]
fn signal_handlers_load_whatever_they_interrupt() {
    static CLOCK: LazyLock<Snapshot<[u64; 5]>> = LazyLock::new(|| Snapshot::new([1; 5]));
    static TORN: AtomicU64 = AtomicU64::new(0);
    static HANDLED: AtomicU64 = AtomicU64::new(0);

    extern "C" fn load_in_handler(_signal: libc::c_int) {
        let seen = CLOCK.load();
        if seen != [seen[0]; 5] {
            TORN.fetch_add(1, Relaxed);
        }
        HANDLED.fetch_add(1, Relaxed);
    }

    LazyLock::force(&CLOCK);
    // `arc_cell`, in the same process, has another handler of SIGUSR1.
    storm::handle(libc::SIGURG, load_in_handler);
    let read = || {
        let seen = CLOCK.load();
        assert_eq!(seen, [seen[0]; 5], "torn");
    };
    let update = || _ = CLOCK.update(|[n, ..]| [n + 1; 5]);
    // First loads are interrupted as well.
    storm::beside(libc::SIGURG, || (), [&read, &update], || HANDLED.load(Relaxed) >= 2_000);
    assert_eq!(TORN.load(Relaxed), 0);
}

thread_local! {
    /// What each thread allocates.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

memory::watched_allocator!(|_| ALLOCATIONS.set(ALLOCATIONS.get() + 1), |_, _| ());

#[test]
fn stores_allocate_nothing_once_there_is_a_buffer_for_each_updater() {
    let snapshot = Snapshot::new([0_u64; 100]);
    for update in 0..100 {
        snapshot.store([update; 100]);
    }
    let before = ALLOCATIONS.get();
    for update in 0..100 {
        snapshot.store([update; 100]);
    }
    assert_eq!(ALLOCATIONS.get(), before);
    let another = Snapshot::new([0_u64; 100]);
    assert!(ALLOCATIONS.get() > before, "the count counts");
    assert_eq!((snapshot.into_inner()[0], another.into_inner()[0]), (99, 0));
}

#[test]
#[cfg(unix)]
#[cfg_attr(miri, ignore = "signals")]
fn a_reader_that_is_stopped_in_a_load_holds_up_no_updater() {
    static HELD: AtomicU64 = AtomicU64::new(0);
    static RELEASED: AtomicU64 = AtomicU64::new(0);

    /// Stays until it is released.
    extern "C" fn stay_in_handler(_signal: libc::c_int) {
        let held = HELD.fetch_add(1, Relaxed) + 1;
        while RELEASED.load(Relaxed) < held {
            // SAFETY: for signal handlers.
            unsafe { libc::sched_yield() };
        }
    }

    // Without sequences it would.
    if !expect::sequences(quiescence::tuning::per_cpu_path() == PerCpuPath::Restartable) {
        return;
    }
    let snapshot = Snapshot::new([0_u64; 64]);
    let reader = Target::default();
    storm::handle(libc::SIGUSR2, stay_in_handler);
    let read = |_| {
        reader.is_here(|| {
            let seen = snapshot.load();
            assert_eq!(seen, [seen[0]; 64], "torn");
        })
    };
    beside(1, read, || {
        for stopped in 1..=200 {
            reader.send(libc::SIGUSR2);
            until(|| HELD.load(Relaxed) >= stopped);
            // It is stopped, most often in the midst of a load.
            snapshot.update(|[n, ..]| [n + 1; 64]);
            snapshot.update(|[n, ..]| [n + 1; 64]);
            RELEASED.store(stopped, Relaxed);
        }
    });
    assert_eq!(snapshot.load(), [400; 64]);
}

#[test]
fn all_of_this_holds_on_the_portable_path() {
    for [(name, value)] in PORTABLE {
        again_in_a_process_with(&["rseq_read"], name, value);
    }
}
