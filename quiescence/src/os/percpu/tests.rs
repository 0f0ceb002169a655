//! Tests of the sequences themselves: they are exact under load, while a control is not; and their
//! instructions are as described.

use std::arch::asm;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use object::{Object, ObjectSymbol};

use super::*;
use crate::common::{again::*, filter::filter, threads::threads};

/// More threads than there are CPUs, so that they are interrupted.
const THREADS: usize = 6;

/// A word for each CPU; the first word of each is another owner's.
fn words() -> *mut u64 {
    let memory = crate::os::memory::map_zeroed(slots() << STRIDE_SHIFT).expect("there is memory");
    memory.cast::<u64>().wrapping_add(1)
}

fn sum(first: *mut u64) -> u64 {
    let word = |slot| {
        let word = first.wrapping_byte_add(slot << STRIDE_SHIFT);
        // SAFETY: a word of those that `words` has mapped, for ever.
        unsafe { AtomicU64::from_ptr(word) }.load(Relaxed)
    };
    (0..slots()).map(word).sum()
}

/// Runs `f` on all threads at once, with the words; the sum of what they return, and the sum of the
/// words.
fn together(f: impl Fn(*mut u64) -> u64 + Sync) -> (u64, u64) {
    let first = words();
    let (place, begin) = (first.expose_provenance(), Barrier::new(THREADS));
    let answers = threads(THREADS, |_| {
        begin.wait();
        f(std::ptr::with_exposed_provenance_mut(place))
    });
    (answers.into_iter().sum(), sum(first))
}

fn restartable() -> bool {
    path() == PerCpuPath::Restartable
}

/// Where there are sequences they happen: else all would count elsewhere, as exactly.
#[test]
fn sequences_leave_where_they_are_to() {
    path();
    let (counted, summed) = together(|first| {
        let (place, mut counted) = (AtomicPtr::new(first), 0);
        for _ in 0..1_000 {
            // SAFETY: every CPU has a word.
            counted += u64::from(unsafe { increment(first) });
            // SAFETY: as above.
            counted += 3 * u64::from(unsafe { add_at::<0>(&place, 3) });
            if counted >= 2 {
                // SAFETY: as above.
                counted -= 2 * u64::from(unsafe { take_at(&place, 2) });
            }
        }
        counted
    });
    assert_eq!(summed, counted);
    assert_eq!(counted != 0, restartable());
    let first = words();
    let (place, nowhere) = (AtomicPtr::new(first), AtomicPtr::new(std::ptr::null_mut()));
    // SAFETY: every CPU has a word.
    assert!(!unsafe { take_at(&place, 1) }, "there is nothing");
    // SAFETY: as above.
    assert!(!unsafe { add_at::<0>(&nowhere, 1) }, "there are no words");
    // SAFETY: as above.
    assert!(!unsafe { take_at(&nowhere, 1) }, "there are no words");
    assert_eq!(sum(first), 0);
    if let Some(area) = area() {
        let nobody = Area { limit: 0, ..area };
        // SAFETY: as above.
        assert!(!unsafe { imp::add_slowly(nobody, first, false, 1) }, "no CPU has words");
        assert_eq!(sum(first), 0);
    }
}

/// As [`imp::add_slowly`], without a descriptor.
fn add_slowly_and_unprotected(offset: isize, first: *mut u64, turns: u64) {
    // SAFETY: the words are there; that it loses counts is what it is for.
    unsafe {
        asm!(
            "mov {t:e}, dword ptr fs:[{offset} + 4]",
            "shl {t}, {shift}",
            imp::slow_addition!(),
            t = out(reg) _, value = out(reg) _, turn = out(reg) _,
            offset = in(reg) offset, first = in(reg) first, turns = in(reg) turns,
            shift = const STRIDE_SHIFT,
            options(nostack)
        );
    }
}

/// A load and a store, far from each other: exact with a descriptor, and inexact without.
#[test]
fn interrupted_sequences_begin_anew() {
    const ROUNDS: u64 = 2_000;
    path();
    let Some(area) = area() else { return };
    let (interrupted, exact) = together(|first| {
        let mut interrupted = 0;
        for _ in 0..ROUNDS {
            // SAFETY: every CPU has a word.
            while !unsafe { imp::add_slowly(area, first, false, 5_000) } {
                interrupted += 1;
            }
        }
        interrupted
    });
    assert_eq!(exact, ROUNDS * THREADS as u64, "{interrupted} times interrupted");
    let lost = (0..50).any(|_| {
        let (_, sum) = together(|first| {
            (0..ROUNDS).for_each(|_| add_slowly_and_unprotected(area.offset, first, 5_000));
            0
        });
        sum != ROUNDS * THREADS as u64
    });
    assert!(lost, "the control counts exactly, so this test shows nothing");
}

/// Threads that are interrupted between load and store begin anew.
#[cfg(quiescence_mutants)]
#[test]
fn interrupted_counts_are_not_lost() {
    if !restartable() {
        return;
    }
    for _ in 0..10 {
        let (counted, sum) = together(|first| {
            // SAFETY: every CPU has a word.
            (0..100_000).map(|_| u64::from(unsafe { increment(first) })).sum()
        });
        assert_eq!(counted, sum, "counts were lost");
    }
}

/// The trial can fail: an area that looks right, of which the kernel does not know.
#[test]
fn the_trial_finds_out_who_interrupts_nobody() {
    in_its_own_process!();
    #[repr(C, align(32))]
    struct Fake([u32; 8]);
    // On one CPU, so that its number stays.
    let mut one = rustix::thread::CpuSet::new();
    one.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &one).unwrap();
    let number = rustix::thread::sched_getcpu() as u32;
    let fake = Fake([number, number, 0, 0, 0, 0, 0, 0]);
    let pointer: usize;
    // SAFETY: loads the thread pointer.
    unsafe { asm!("mov {}, qword ptr fs:[0]", out(reg) pointer) };
    let offset = fake.0.as_ptr().addr().wrapping_sub(pointer).cast_signed();
    assert_eq!(CHOSEN.state.load(Relaxed), 0, "nobody has chosen");
    assert!(!imp::is_sound(Area { offset, limit: 1 << 20 }));
    if let Some(offset) = imp::area_offset()
        && fence::register_restarts()
    {
        assert!(imp::is_sound(Area { offset, limit: 1 << 20 }));
    }
}

static TRAPPED_HERE: AtomicU64 = AtomicU64::new(0);
static TRAPPED_ELSEWHERE: AtomicU64 = AtomicU64::new(0);
static TESTER: AtomicU64 = AtomicU64::new(0);

fn thread_number() -> u64 {
    rustix::thread::gettid().as_raw_nonzero().get() as u64
}

extern "C" fn trapped(_: libc::c_int) {
    let here = TESTER.load(Relaxed) == thread_number();
    (if here { &TRAPPED_HERE } else { &TRAPPED_ELSEWHERE }).fetch_add(1, Relaxed);
}

/// Where a call of the thread that interrupts is answered by a signal, its maker gets that, and
/// there is no such thread: a handler would run on its maker's stack.
#[test]
fn a_filter_that_traps_does_so_before_there_is_another_thread() {
    in_its_own_process!();
    let Some(offset) = imp::area_offset().filter(|_| fence::register_restarts()) else { return };
    TESTER.store(thread_number(), Relaxed);
    let handler = trapped as extern "C" fn(libc::c_int);
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGSYS, handler as libc::sighandler_t) };
    filter(libc::SYS_nanosleep, None, libc::SECCOMP_RET_TRAP);
    assert!(!imp::is_sound(Area { offset, limit: 1 << 20 }));
    assert_eq!((TRAPPED_HERE.load(Relaxed), TRAPPED_ELSEWHERE.load(Relaxed)), (1, 0));
}

unsafe extern "C" {
    /// Where the linker has put the program's descriptors.
    #[link_name = "__start___rseq_cs"]
    static DESCRIPTORS: u8;
    #[link_name = "__stop___rseq_cs"]
    static DESCRIPTORS_END: u8;
}

/// As the kernel reads it.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    version: u32,
    flags: u32,
    start: usize,
    length: usize,
    abort: usize,
}

fn descriptors() -> &'static [Descriptor] {
    let (start, end) = (&raw const DESCRIPTORS, &raw const DESCRIPTORS_END);
    let count = (end.addr() - start.addr()) / size_of::<Descriptor>();
    // SAFETY: the section holds nothing else.
    unsafe { std::slice::from_raw_parts(start.cast(), count) }
}

/// Every sequence in this program, wherever the compiler has put it, is one that the kernel
/// accepts.
#[test]
fn descriptors_are_as_the_kernel_wants_them() {
    assert!(!descriptors().is_empty());
    for descriptor in descriptors() {
        let Descriptor { version, flags, start, length, abort } = *descriptor;
        assert_eq!((version, flags), (0, 0));
        assert!(length > 0 && !(start..start + length).contains(&abort), "{descriptor:?}");
        let signature = std::ptr::with_exposed_provenance::<u32>(abort - 4);
        // SAFETY: a part of the program's text.
        assert_eq!(unsafe { signature.read_unaligned() }, 0x5305_3053);
    }
}

/// For the look at its instructions.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn quiescence_gate_increment(first: *mut u64) -> bool {
    // SAFETY: only called with words.
    unsafe { increment(first) }
}

/// What `objdump` says of this program's text between two addresses of it as it is loaded.
fn disassembled(program: &std::path::Path, from: usize, to: usize) -> Vec<String> {
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-M", "intel"])
        .args([format!("--start-address={from}"), format!("--stop-address={to}")])
        .arg(program)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let instruction = |line: &str| line.split_once(":\t").map(|(_, text)| text.trim().to_owned());
    text.lines().filter_map(instruction).collect()
}

#[test]
fn a_count_has_no_locked_instruction_and_few_others() {
    path();
    let first = words();
    assert_eq!(quiescence_gate_increment(first), restartable());
    assert_eq!(sum(first), u64::from(restartable()));
    if Command::new("objdump").arg("--version").output().is_err() {
        return crate::common::expect::skip("binutils", "objdump", "", "install binutils");
    }
    let program = std::env::current_exe().unwrap();
    let bytes = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbols: BTreeMap<_, _> =
        file.symbols().filter_map(|s| Some((s.name().ok()?, (s.address(), s.size())))).collect();
    let (at, size) = symbols["quiescence_gate_increment"];
    let loaded_at = quiescence_gate_increment as *const () as usize - at as usize;
    let whole = disassembled(&program, at as usize, (at + size) as usize);
    let range = at as usize + loaded_at..(at + size) as usize + loaded_at;
    let descriptor = descriptors().iter().find(|one| range.contains(&one.start)).unwrap();
    let start = descriptor.start - loaded_at;
    let sequence = disassembled(&program, start, start + descriptor.length);
    if cfg!(not(quiescence_mutants)) {
        // The number, its comparison and jump, its place, the commit.
        assert_eq!(sequence.len(), 5, "{sequence:#?}");
        assert!(sequence[4].starts_with("add") && sequence[4].contains("PTR ["), "{sequence:#?}");
        assert!(!whole.iter().any(|text| text.starts_with("lock")), "{whole:#?}");
        // Not if it has not been optimised, or is watched by a sanitizer.
        let optimised = !whole.iter().any(|text| text.contains("[rsp") || text.contains("+0x7fff"));
        // The limit, and whether there is one; where the area is, the announcement; the answer.
        // After its return there are the other results only.
        let fast_path = whole.iter().position(|text| text.starts_with("ret")).unwrap() + 1;
        assert!(!optimised || fast_path <= 20, "{fast_path} instructions: {whole:#?}");
    }
}
