//! What the library takes of the allocator: for objects that wait, and for reports.

mod common;

use std::sync::PoisonError;

use common::*;
use memory::watched_allocator;
use quiescence::{tag::DomainTag, tuning::Fences};

/// How many bytes are in use.
static IN_USE: AtomicI64 = AtomicI64::new(0);

watched_allocator!(|layout| _ = IN_USE.fetch_add(layout.size() as i64, SeqCst), |_, layout| _ =
    IN_USE.fetch_sub(layout.size() as i64, SeqCst));

/// The tests of this file, one at a time: they look at what all threads have taken.
static TURN: Mutex<()> = Mutex::new(());

const OBJECTS: i64 = if cfg!(miri) { 2_000 } else { 100_000 };

/// What does not grow with what waits: threads, tables, pages that are partly filled.
const BESIDE: i64 = 64 << 10;

type Object = [u64; 8];

quiescence::domain! { struct Declared; }

/// What each of many objects takes that wait, since this thread is in a section of the domain.
/// `updates` calls its argument with all numbers below [`OBJECTS`], on a thread of its own.
fn bytes_of_a_waiting_object<K: DomainTag>(
    domain: &Domain<K>,
    updates: impl FnOnce(&dyn Fn(i64)) + Send,
) -> f64 {
    set_limit(domain, u64::MAX, u64::MAX);
    let place = Rcu::new_in([0; 8], domain.clone());
    let guard = domain.read();
    let bytes = elsewhere(|| {
        let before = IN_USE.load(SeqCst);
        updates(&|number| place.store([number as u64; 8] as Object));
        IN_USE.load(SeqCst) - before
    });
    assert!(domain.statistics().callbacks_waiting() >= OBJECTS as u64);
    drop(guard);
    domain.barrier();
    (bytes - BESIDE) as f64 / OBJECTS as f64
}

/// An object of 64 bytes takes them and one word.
#[test]
// Built with debug assertions the library keeps a list of what is retired.
#[cfg_attr(debug_assertions, ignore = "cargo test --release")]
fn an_object_that_waits_costs_a_word_in_every_kind_of_domain() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let check = |kind: &str, bytes: f64| {
        let expected = 64.0 - 2.0..64.0 + 8.1;
        assert!(expected.contains(&bytes), "{kind}: {bytes:.2} bytes an object");
    };
    let all = |replace: &dyn Fn(i64)| (0..OBJECTS).for_each(replace);
    let (private, srcu) = (Domain::new(), Srcu::new());
    let fencing = Domain::builder().fences(Fences::Portable).build();
    check("global", bytes_of_a_waiting_object(&Domain::global(), all));
    check("private", bytes_of_a_waiting_object(&private, all));
    check("fencing", bytes_of_a_waiting_object(&fencing, all));
    check("declared", bytes_of_a_waiting_object(&Domain::of(Declared), all));
    check("sleepable", bytes_of_a_waiting_object(&srcu.domain(), all));
    let quiescent_states = |replace: &dyn Fn(i64)| {
        let mut reader = private.qsbr();
        for number in 0..OBJECTS {
            replace(number);
            reader.quiescent_state();
        }
    };
    check("QSBR", bytes_of_a_waiting_object(&private, quiescent_states));
}

/// A report read the program's symbols and debug information, tens of megabytes: a reader that
/// stalled with the domain at its limit cost 65 MB over what waited.
#[test]
#[cfg(all(target_os = "linux", feature = "stacks", not(miri)))]
fn a_report_takes_little_memory() {
    let resident = || memory::resident() as i64;
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    const MOST: i64 = 3 << 20;
    let (most, most_resident) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    quiescence::report::set_stall_hook({
        let (most, most_resident) = (Arc::clone(&most), Arc::clone(&most_resident));
        move |report| {
            // On a machine that is busy the thread may not answer in time.
            if report.holdouts.iter().all(|holdout| holdout.stack.is_ok()) {
                most_resident.fetch_max(resident(), SeqCst);
                most.fetch_max(IN_USE.load(SeqCst), SeqCst);
            }
        }
    });
    let domain = Domain::new();
    tune(&domain, |tuning| tuning.stall_after = Some(Duration::from_millis(2)));
    let (before, resident_before) = (IN_USE.load(SeqCst), resident());
    let guard = domain.read();
    thread::scope(|scope| {
        scope.spawn(|| domain.synchronize());
        until(|| most.load(SeqCst) != 0);
        drop(guard);
    });
    let (taken, taken_resident) =
        (most.load(SeqCst) - before, most_resident.load(SeqCst) - resident_before);
    assert!(taken < MOST && taken_resident < MOST, "{taken} bytes, {taken_resident} resident");
    drop(quiescence::report::take_stall_hook());
}
