//! The parts of a grace period of restartable reads, and what happens if one is missing.
//!
//! Readers here take long between loading a pointer and reading what it points to, in a sequence of
//! this file's own or in a fallback section. More readers than CPUs run, so that they are preempted
//! at that point. The updater poisons a replaced object as soon as its grace period has ended. With
//! all parts no reader ever finds poison. If one part is missing, and nothing else is changed,
//! readers must find some: otherwise these tests would show nothing. The objects stay mapped, so a
//! fault is counted and does not crash.

use std::arch::asm;
use std::hint::spin_loop;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{grace_period, section};
use crate::common::threads::{beside, until};
use crate::os::{fence, percpu};
use crate::tuning::PerCpuPath;

const READERS: usize = 6;

/// Fills an object that has been freed.
const POISON: u64 = 0x6b6b_6b6b_6b6b_6b6b;

/// An updater gives up after so many updates without the expected fault.
const UPDATES_MAX: u64 = 2_000_000;

/// The number of updates with complete grace periods.
const UPDATES: u64 = 2_000;

type Object = [AtomicU64; 4];

/// What readers have found.
#[derive(Debug, Default)]
struct Found {
    whole: AtomicU64,
    bad: AtomicU64,
    begun_anew: AtomicU64,
}

/// A sequence with a long loop of `turns` between loading the pointer and the words. Returns the
/// words, and how often it was restarted. It gives up after eight restarts, without words.
#[inline(never)]
fn read_slowly(place: &AtomicPtr<Object>, turns: u64) -> (Option<[u64; 4]>, u64) {
    let (a, b, c, d): (u64, u64, u64, u64);
    let left: u64;
    // SAFETY: the objects stay mapped. glibc has registered the thread's area, since the path is
    // `Restartable`; what a sequence is made of is argued in `os/percpu`.
    unsafe {
        asm!(
            percpu::descriptor!(),
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {offset}, qword ptr [{offset}]",
            "66:",
            "lea {t}, [rip + 22b]",
            "mov qword ptr fs:[{offset} + 8], {t}",
            "33:",
            "mov {t}, qword ptr [{place}]",
            "mov {a}, {turns}",
            "99:",
            "dec {a}",
            "jnz 99b",
            "mov {a}, qword ptr [{t}]",
            "mov {b}, qword ptr [{t} + 8]",
            "mov {c}, qword ptr [{t} + 16]",
            "mov {d}, qword ptr [{t} + 24]",
            "44:",
            ".pushsection __rseq_failure, \"ax\"",
            ".byte 0x0f, 0xb9, 0x3d",
            ".long 0x53053053",
            "55:",
            "dec {left}",
            "jnz 66b",
            "jmp 44b",
            ".popsection",
            place = in(reg) place.as_ptr(), turns = in(reg) turns,
            offset = out(reg) _, t = out(reg) _,
            a = out(reg) a, b = out(reg) b, c = out(reg) c, d = out(reg) d,
            left = inout(reg) 8_u64 => left,
            options(nostack)
        );
    }
    ((left != 0).then_some([a, b, c, d]), 8 - left)
}

/// The same in a fallback section.
fn read_slowly_in_section(place: &AtomicPtr<Object>, turns: u64) -> (Option<[u64; 4]>, u64) {
    let section = section();
    let object = place.load(Acquire);
    for _ in 0..turns {
        spin_loop();
    }
    // SAFETY: the objects stay until all readers have ended.
    let words = unsafe { &*object }.each_ref().map(|word| word.load(Relaxed));
    drop(section);
    (Some(words), 0)
}

type Read = fn(&AtomicPtr<Object>, u64) -> (Option<[u64; 4]>, u64);

fn reads(read: Read, place: &AtomicPtr<Object>, found: &Found) -> impl FnMut() {
    let mut turns = 1;
    move || {
        turns = turns * 7 % 19_997; // from 1 to 19,996
        let (words, begun_anew) = read(place, turns);
        found.begun_anew.fetch_add(begun_anew, Relaxed);
        let Some(words) = words else { return };
        let good = words != [POISON; 4] && words == [words[0]; 4];
        if good { &found.whole } else { &found.bad }.fetch_add(1, Relaxed);
    }
}

/// Lets one test at a time use the CPUs.
static TURN: Mutex<()> = Mutex::new(());

/// Replaces an object `most` times, or until a reader has found a bad one.
fn updates(most: u64, read: Read, grace_period: impl Fn()) -> Found {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let objects = [0, POISON].map(|word| [word; 4].map(AtomicU64::new));
    let place = AtomicPtr::new((&raw const objects[0]).cast_mut());
    let found = Found::default();
    let begin = |_| reads(read, &place, &found);
    beside(READERS, begin, || {
        until(|| found.whole.load(Relaxed) >= READERS as u64);
        for update in 1..=most {
            let [old, new] = if update % 2 == 0 { [1, 0] } else { [0, 1] };
            objects[new].iter().for_each(|word| word.store(update, Relaxed));
            place.swap((&raw const objects[new]).cast_mut(), AcqRel);
            grace_period();
            objects[old].iter().for_each(|word| word.store(POISON, Relaxed));
            if found.bad.load(Relaxed) != 0 {
                break;
            }
            // Readers need time between barriers; a yield lets another reader run.
            for _ in 0..update % 1024 {
                spin_loop();
            }
            if update % 64 == 0 {
                thread::yield_now();
            }
        }
    });
    found
}

/// Whether this machine has restartable sequences. If not, none is ever executed.
fn are_there_sequences() -> bool {
    crate::common::expect::sequences(percpu::path() == PerCpuPath::Restartable)
}

#[test]
fn after_the_barrier_no_sequence_sees_what_was_replaced() {
    if are_there_sequences() {
        let found = updates(UPDATES, read_slowly, grace_period);
        assert_eq!(found.bad.into_inner(), 0);
        assert!(found.whole.into_inner() > 0 && found.begun_anew.into_inner() > 0);
    }
}

#[test]
fn without_the_barrier_it_is_seen() {
    if are_there_sequences() {
        let found = updates(UPDATES_MAX, read_slowly, || ());
        assert!(found.bad.into_inner() > 0, "the control has not failed");
    }
}

#[test]
fn a_barrier_that_only_fences_does_not_help() {
    if are_there_sequences() {
        let found = updates(UPDATES_MAX, read_slowly, || fence::heavy(std::iter::empty()));
        assert!(found.bad.into_inner() > 0, "the control has not failed");
    }
}

#[test]
fn fallback_sections_are_waited_for() {
    let found = updates(UPDATES / 100, read_slowly_in_section, grace_period);
    assert_eq!(found.bad.into_inner(), 0);
    assert!(found.whole.into_inner() > 0);
}

#[test]
fn who_does_not_look_for_fallback_sections_frees_under_them() {
    let found = updates(UPDATES_MAX, read_slowly_in_section, percpu::barrier);
    assert!(found.bad.into_inner() > 0, "the control has not failed");
}
