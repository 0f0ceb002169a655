use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::host::Quiet;
use crate::shapes::{Counted, Operation, Plan, Ready, Seat, counting};

const WANTED: Wanted = Wanted { slices: 8, seed: 1, pin: false, least: COUNTED_MIN };

#[test]
fn every_row_has_figures_or_a_reason() {
    let word = AtomicU64::new(0);
    let add = |part: &Part<'_>| part.times(|| _ = word.fetch_add(1, Ordering::Relaxed));
    let rows = [Row::new(1, add), Row::new(2, add)];
    let (measured, verdict) = run(&rows, &WANTED, &mut Quiet::default());
    for one in &measured {
        assert_ne!(one.values.is_empty(), one.missing.is_none(), "{measured:?}");
        assert!(one.values.iter().all(|ns| *ns > 0.1 && *ns < 1e6), "{measured:?}");
        assert!(one.values.is_empty() || one.values.len() >= COUNTED_MIN);
    }
    assert_eq!(verdict.rows, 2);
    assert!(verdict.counted <= verdict.drawn && verdict.seconds > 0.0, "{verdict:?}");
}

#[test]
fn threads_that_are_not_timed_work_until_the_others_have_ended() {
    let turns = AtomicUsize::new(0);
    let body = |part: &Part<'_>| match part.me {
        0 => part.times(std::hint::spin_loop),
        _ => part.until_over(|| _ = turns.fetch_add(1, Ordering::Relaxed)),
    };
    let rows = [Row { timed: 1, ..Row::new(2, body) }];
    run(&rows, &WANTED, &mut Quiet::default());
    assert!(turns.load(Ordering::Relaxed) > 0);
}

/// Each round of a race worked it out again, by slices that no figure is made of.
#[test]
fn a_count_that_is_known_was_worked_out_again() {
    let parts = Mutex::new(Vec::new());
    let body = |part: &Part<'_>| {
        parts.lock().unwrap().push((part.count, part.slice));
        part.times(std::hint::spin_loop)
    };
    let counted = |known| {
        let (measured, _) =
            run(&[Row { known, ..Row::new(1, body) }], &WANTED, &mut Quiet::default());
        measured[0].count
    };
    assert!(counted(None).is_some_and(|count| count > 8));
    assert_eq!(parts.lock().unwrap()[2], (1, None));
    parts.lock().unwrap().clear();
    counted(Some(80_000));
    // The first one is of the library's own threads, the second one the warm-up.
    assert_eq!(parts.lock().unwrap()[1..3], [(10_000, None), (80_000, Some(0))]);
}

#[test]
fn a_stopped_run_says_so() {
    let mut host = Quiet::default();
    host.stops.store(true, Ordering::Relaxed);
    let rows = [Row::new(1, |part| part.times(std::hint::spin_loop))];
    let (measured, verdict) = run(&rows, &WANTED, &mut host);
    assert_eq!(measured[0].missing, Some(Missing::Interrupted));
    assert_eq!((verdict.without_figure, verdict.name()), (1, "incomplete"));
}

#[test]
#[should_panic(expected = "no thread of a row panics")]
fn a_panic_of_one_thread_ends_the_run() {
    let body = |part: &Part<'_>| {
        assert_eq!(part.me, 0, "the other one");
        part.times(std::hint::spin_loop)
    };
    let _ = run(&[Row::new(2, body)], &WANTED, &mut Quiet::default());
}

#[test]
#[should_panic(expected = "no thread of a row panics")]
fn a_panic_ends_who_works_until_the_others_have_ended() {
    let body = |part: &Part<'_>| match part.me {
        0 => part.until_over(std::hint::spin_loop),
        _ => panic!("the one that is timed"),
    };
    // As if thread 1 were timed: thread 0 has no other end.
    let rows = [Row { timed: 0, ..Row::new(2, body) }];
    let _ = run(&rows, &WANTED, &mut Quiet::default());
}

/// What is told that the slice is over by its own first operation.
#[derive(Default)]
struct Long(AtomicU64);

counting! {
    Long, exact: true,
        add: |count| {
            count.0.fetch_add(1, Ordering::Relaxed);
            OVER.store(1, Ordering::Relaxed);
        },
        sum: |count| count.0.load(Ordering::Relaxed);
}

static OVER: AtomicU64 = AtomicU64::new(0);

/// Up to 31 more were done, so that no slice of large values counted: the other threads had ended
/// long before.
#[test]
fn a_thread_that_does_long_operations_ends_with_the_others() {
    let plan = Plan::of_one_thread([Operation::update(0); 40]);
    let part = Part::new(0, 40, None, (&OVER, 1));
    Ready::<Counted<Long>>::boxed(&plan).work(&plan, &part, &mut Seat::new(0));
    assert_eq!(part.did.get(), 1);
}

#[test]
fn a_thread_that_had_no_cpu_at_first_does_not_make_short_slices_count() {
    let calls = AtomicUsize::new(0);
    let counts = Mutex::new(Vec::new());
    let body = |part: &Part<'_>| {
        // After the trial and a warm-up this is the first slice; as if another thread had its CPU
        // meanwhile.
        if calls.fetch_add(1, Ordering::Relaxed) == 2 {
            std::thread::sleep(Duration::from_millis(3));
        }
        if let Some(slice) = part.slice {
            counts.lock().unwrap().push((slice, part.count));
        }
        part.times(std::hint::spin_loop)
    };
    let (measured, _) = run(&[Row::new(1, body)], &WANTED, &mut Quiet::default());
    let counts = counts.into_inner().unwrap();
    let is_of_figure = |(slice, _): &&(u32, u64)| measured[0].slices.contains(slice);
    for (slice, count) in counts.iter().filter(is_of_figure) {
        assert!(*count > 100, "slice {slice} has {count} operations of some nanoseconds");
    }
}
