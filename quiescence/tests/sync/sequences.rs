//! Sequence locks and latches: what is read is one value, also beside writers; those who wait
//! have their turn.

use crate::common::*;
use quiescence::sync::{Latch, NoUninit, SeqLock};

const MANY: usize = if cfg!(miri) { 8 } else { 512 };
const WRITES: u64 = if cfg!(miri) { 50 } else { 20_000 };

/// Words that all follow from the first one.
fn words<const N: usize>(serial: u64) -> [u64; N] {
    std::array::from_fn(|i| serial.wrapping_mul(2 * i as u64 + 1))
}

/// Two threads write, two read until they are through: what they read is whole, and never goes back
/// behind what they have read.
fn is_whole<const N: usize>(write: impl Fn(u64) + Sync, read: impl Fn() -> [u64; N] + Sync) {
    let serial = Mutex::new(0);
    let read_on = |_| {
        let (mut last, read) = (0, &read);
        move || {
            let value = read();
            assert!(value == words(value[0]), "torn: {:?}", &value[..4]);
            assert!(value[0] >= last, "{} was read after {last}", value[0]);
            last = value[0];
        }
    };
    let write = |_| {
        for _ in 0..WRITES {
            let mut serial = serial.lock().unwrap();
            *serial += 1;
            write(*serial);
        }
    };
    beside(2, read_on, || threads(2, write));
    assert!(read() == words(2 * WRITES));
}

#[test]
fn no_read_has_words_of_two_values() {
    let few = SeqLock::new(words::<4>(0));
    is_whole(|serial| few.write(words(serial)), || few.read());
    let many = SeqLock::new(words::<MANY>(0));
    is_whole(|serial| many.write(words(serial)), || many.read());
    let many = SeqLock::new(words::<MANY>(0));
    let read = || std::iter::repeat_with(|| many.try_read()).flatten().next().unwrap();
    is_whole(|serial| many.write(words(serial)), read);
}

#[test]
fn no_read_of_a_latch_has_words_of_two_values() {
    let few = Latch::new(words::<4>(0));
    is_whole(|serial| few.write(words(serial)), || few.read());
    let many = Latch::new(words::<MANY>(0));
    is_whole(|serial| many.write(words(serial)), || many.read());
}

#[test]
fn no_update_is_lost() {
    let (lock, latch) = (SeqLock::new([0_u64; 3]), Latch::new([0_u64; 3]));
    threads(4, |_| {
        for _ in 0..WRITES / 10 {
            lock.update(|old| old.map(|word| word + 1));
            latch.update(|old| old.map(|word| word + 1));
        }
    });
    assert_eq!(lock.into_inner(), [4 * (WRITES / 10); 3]);
    assert_eq!(latch.into_inner(), [4 * (WRITES / 10); 3]);
}

#[test]
fn writers_that_sleep_have_their_turn() {
    let lock = SeqLock::new(0_u64);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..100 {
            let guard = lock.lock();
            let (lock, sender) = (&lock, sender.clone());
            for _ in 0..3 {
                let sender = sender.clone();
                scope.spawn(move || {
                    sender.send(()).unwrap();
                    lock.update(|old| old + 1);
                });
            }
            // They have begun; let them get as far as they can.
            receiver.iter().take(3).for_each(drop);
            (0..20).for_each(|_| thread::yield_now());
            drop(guard);
        }
    });
    assert_eq!(lock.read(), 300);
}

/// The reader takes the lock in the end, and waits for it: it does not depend on when writers stop.
#[test]
fn a_reader_that_meets_a_held_lock_reads_on() {
    let lock = SeqLock::new(words::<4>(1));
    let mut guard = lock.lock();
    // The value is whole while the lock is held, and only not while it is written.
    assert_eq!(lock.read(), words(1));
    assert_eq!(*guard, words(1));
    guard.set(words(2));
    assert_eq!(lock.read(), words(2));
    guard.set(words(3));
    assert_eq!(lock.try_read(), Some(words(3)));
    // A guard may end on another thread.
    elsewhere(move || drop(guard));
    lock.write(words(4));
    assert_eq!(lock.read(), words(4));
}

#[test]
fn a_panic_in_an_update_changes_nothing() {
    let (lock, latch) = (SeqLock::new([1_u64, 2]), Latch::new([1_u64, 2]));
    for _ in 0..3 {
        panic_of(|| lock.update(|_| panic!("on purpose")));
        panic_of(|| latch.update(|_| panic!("on purpose")));
        assert_eq!((lock.read(), latch.read()), ([1, 2], [1, 2]));
    }
    assert_eq!(lock.update(|[a, b]| [a + 1, b + 1]), [1, 2]);
    assert_eq!(latch.update(|[a, b]| [a + 1, b + 1]), [1, 2]);
    assert_eq!((lock.into_inner(), latch.into_inner()), ([2, 3], [2, 3]));
}

#[test]
fn what_happened_before_a_write_is_seen_by_those_who_read_it() {
    for _ in 0..100 {
        let (lock, latch) = (SeqLock::new(false), Latch::new(false));
        let (first, second) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                first.store(true, Relaxed);
                lock.write(true);
                second.store(true, Relaxed);
                latch.write(true);
            });
            scope.spawn(|| {
                until(|| lock.read());
                assert!(first.load(Relaxed));
                until(|| latch.read());
                assert!(second.load(Relaxed));
            });
        });
    }
}

/// Structs without padding, in statics; values with invalid bit patterns; of every shape.
#[test]
fn values_of_many_types_go_in_and_come_out() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    struct Clock {
        base_ns: u64,
        mult: u32,
        shift: u16,
        is_stopped: bool,
        zone: u8,
    }
    // SAFETY: 8 + 4 + 2 + 1 + 1 bytes, none of them padding.
    unsafe impl NoUninit for Clock {}
    const NEW: Clock = Clock { base_ns: 7, mult: 6, shift: 5, is_stopped: true, zone: 4 };
    static LOCK: SeqLock<Clock> =
        SeqLock::new(Clock { base_ns: 0, mult: 1, shift: 0, is_stopped: false, zone: 0 });
    static LATCH: Latch<Clock> =
        Latch::new(Clock { base_ns: 0, mult: 1, shift: 0, is_stopped: false, zone: 0 });
    LOCK.write(NEW);
    LATCH.write(NEW);
    assert_eq!((LOCK.read(), LATCH.read()), (NEW, NEW));

    let mut lock = SeqLock::new('a');
    *lock.get_mut() = 'b';
    lock.write(char::from_u32(lock.read() as u32 + 1).unwrap());
    assert_eq!(lock.into_inner(), 'c');
    let odd = SeqLock::from([1_u8; 13]);
    odd.write([2; 13]);
    assert_eq!(odd.read(), [2; 13]);
    SeqLock::new(()).write(());
    assert_eq!(SeqLock::<u32>::default().read(), Latch::<u32>::default().read());
}

#[test]
fn they_can_be_printed() {
    let lock = SeqLock::new([1_u8, 2]);
    assert_eq!(format!("{lock:?} {:?}", Latch::from(3_u8)), "SeqLock([1, 2]) Latch(3)");
    assert_eq!(format!("{:?}", lock.lock()), "[1, 2]");
}

#[test]
#[should_panic(expected = "a writer of this SeqLock never finished")]
fn a_lock_that_was_leaked_gives_no_reference() {
    let mut lock = SeqLock::new(1_u8);
    std::mem::forget(lock.lock());
    lock.get_mut();
}

/// A handler that has interrupted the writer, as a thread that looks while it is stopped there.
#[test]
#[cfg(target_os = "linux")]
#[cfg_attr(miri, ignore = "signals")]
fn a_handler_reads_a_latch_wherever_it_has_interrupted_its_writer() {
    static LATCH: Latch<[u64; 64]> = Latch::new([0; 64]);
    static LOCK: SeqLock<[u64; 64]> = SeqLock::new([0; 64]);
    static FAULT: AtomicBool = AtomicBool::new(false);
    static CALLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn look(_: libc::c_int) {
        let value = LATCH.read();
        let lock = LOCK.try_read().unwrap_or([0; 64]);
        if value != [value[0]; 64] || lock != [lock[0]; 64] {
            FAULT.store(true, Relaxed);
        }
        CALLED.fetch_add(1, Relaxed);
    }

    storm::handle(libc::SIGUSR1, look);
    let writer = storm::Target::default();
    let write = |_| {
        let mut number = 0;
        writer.is_here(move || {
            number += 1;
            LATCH.write([number; 64]);
            LOCK.write([number; 64]);
        })
    };
    beside(1, write, || {
        while CALLED.load(Relaxed) < 2_000 {
            storm::send_many(libc::SIGUSR1, std::slice::from_ref(&writer));
        }
    });
    assert!(!FAULT.load(Relaxed), "a handler has read words of two values");
}
