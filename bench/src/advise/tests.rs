//! Every design, on both workloads, is right; and being wrong is noticed.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;

const KEYS: u32 = 100;
const OPERATIONS_PER_THREAD: u64 = 6000;

/// Longer than any test may take, and never waited for.
const VERY_LONG: Duration = Duration::from_secs(3600);

/// Designs that keep some of what was replaced until they are dropped themselves, or (crossbeam)
/// as long as other users of the process-wide collector are pinned.
const FREE_LATE: [&str; 3] = ["crossbeam-epoch", "seize", "papaya"];

/// Two threads that read and update, in the order of a fixed generator.
fn plan() -> Plan {
    let mut state = 88_172_645_463_325_252_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 16
    };
    let mut operation = || {
        let key = draw() as u32 % KEYS;
        if draw() % 4 == 0 { Operation::update(key) } else { Operation::read(key) }
    };
    Plan {
        keys: (0..KEYS).map(|i| format!("/some/path/{i}").into_bytes().into()).collect(),
        value_bytes: 96,
        work: 20,
        operations: (0..2).map(|_| (0..997).map(|_| operation()).collect()).collect(),
        run_for: VERY_LONG,
        stop: Arc::new(AtomicBool::new(false)),
    }
}

/// The serial numbers that `key` may end with: that of the last update of any thread to it.
fn last_serials(plan: &Plan, workload: Workload, key: u32) -> HashSet<u32> {
    let mut last = HashSet::new();
    for (thread, operations) in plan.operations.iter().enumerate() {
        let done = operations.iter().cycle().take(OPERATIONS_PER_THREAD as usize);
        let updates = done.filter(|operation| operation.is_update());
        let mine = |operation: &Operation| workload == Workload::Config || operation.key() == key;
        let numbered = (1..).zip(updates).filter(|(_, operation)| mine(operation));
        last.extend(numbered.last().map(|(number, _)| (thread as u32 + 1) << 24 | number));
    }
    if last.is_empty() { HashSet::from([0]) } else { last }
}

fn each_design(check: impl Fn(Workload, &Design, &Plan)) {
    let plan = plan();
    for workload in [Workload::Table, Workload::Config] {
        for design in designs(workload) {
            check(workload, design, &plan);
        }
    }
}

#[test]
fn every_design_reads_whole_values_and_counts_what_it_did() {
    each_design(|workload, design, plan| {
        let outcome =
            build(workload, design.name, plan).unwrap().round_of(plan, OPERATIONS_PER_THREAD);
        let updates: usize = plan
            .operations
            .iter()
            .map(|operations| {
                let done = operations.iter().cycle().take(OPERATIONS_PER_THREAD as usize);
                done.filter(|operation| operation.is_update()).count()
            })
            .sum();
        assert_eq!(outcome.checksum_errors, 0, "{workload:?} {}", design.name);
        assert_eq!(outcome.updates, updates as u64, "{workload:?} {}", design.name);
        assert_eq!(outcome.reads + outcome.updates, 2 * OPERATIONS_PER_THREAD);
        assert_eq!(outcome.update_latency.len(), outcome.updates);
        assert!(outcome.elapsed > Duration::ZERO);
    });
}

#[test]
fn every_design_shows_the_last_update_of_every_key() {
    each_design(|workload, design, plan| {
        let mut prepared = build(workload, design.name, plan).unwrap();
        prepared.round_of(plan, OPERATIONS_PER_THREAD);
        for (number, key) in (0..).zip(plan.keys.iter()) {
            let serial = prepared.serial(key).expect("every key is there");
            assert!(
                last_serials(plan, workload, number).contains(&serial),
                "{workload:?} {}: key {number} ended with update {serial:#x}",
                design.name
            );
        }
    });
}

#[test]
fn every_design_frees_all_in_the_end_and_most_do_when_asked() {
    each_design(|workload, design, plan| {
        let mut prepared = build(workload, design.name, plan).unwrap();
        let freed = prepared.freed();
        let replaced = prepared.round_of(plan, OPERATIONS_PER_THREAD).updates;
        if !FREE_LATE.contains(&design.name) {
            assert_eq!(freed(), replaced, "{workload:?} {}", design.name);
        }
        drop(prepared);
        let current = if workload == Workload::Config { 1 } else { u64::from(KEYS) };
        if design.name == "crossbeam-epoch" {
            drain_crossbeam(|| freed() == replaced + current);
        }
        assert_eq!(freed(), replaced + current, "{workload:?} {} leaks", design.name);
    });
}

/// crossbeam has no barrier, and its collector is shared with the tests that run meanwhile: ask
/// again and again, and far more often than their whole run takes.
fn drain_crossbeam(is_done: impl Fn() -> bool) {
    for _ in 0..10_000_000 {
        if is_done() {
            return;
        }
        ::crossbeam_epoch::pin().flush();
        std::thread::yield_now();
    }
}

#[test]
fn rounds_can_be_repeated_and_ended_from_outside() {
    each_design(|workload, design, plan| {
        let mut prepared = build(workload, design.name, plan).unwrap();
        prepared.round_of(plan, 100);
        let ended = Plan { stop: Arc::new(AtomicBool::new(true)), ..plan.clone() };
        let outcome = prepared.round(&ended);
        assert_eq!(outcome.checksum_errors, 0, "{workload:?} {}", design.name);
    });
}

#[test]
fn threads_without_operations_end_at_once() {
    let mut plan = plan();
    plan.operations = [Box::default(), Box::default()].into_iter().collect();
    let outcome = build(Workload::Table, "std-mutex", &plan).unwrap().round(&plan);
    assert_eq!((outcome.reads, outcome.updates), (0, 0));
}

#[test]
fn freeing_at_once_is_noticed() {
    let plan = plan();
    let whole = Ready::<Whole<wrong::FreesAtOnce>>::boxed(&plan).round_of(&plan, 2000);
    assert!(whole.checksum_errors > 0);
    let keyed = Ready::<PerKey<wrong::FreesAtOnce>>::boxed(&plan).round_of(&plan, 20_000);
    assert!(keyed.checksum_errors > 0);
}

#[test]
fn tearing_is_noticed() {
    let plan = plan();
    let whole = Ready::<Whole<wrong::Tears>>::boxed(&plan).round_of(&plan, 2000);
    assert!(whole.checksum_errors > 0);
    let keyed = Ready::<PerKey<wrong::Tears>>::boxed(&plan).round_of(&plan, 20_000);
    assert!(keyed.checksum_errors > 0);
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let error = build(Workload::Config, "seqlock", &plan()).err().unwrap().to_string();
    assert!(error.contains("\"seqlock\""), "{error}");
    assert!(error.contains("std-mutex, std-rwlock, "), "{error}");
    assert!(!error.contains("papaya"), "not a design for a config: {error}");
}

#[test]
fn names_are_unique_and_descriptions_are_one_line() {
    for workload in [Workload::Table, Workload::Config] {
        let names: HashSet<_> = designs(workload).iter().map(|design| design.name).collect();
        assert_eq!(names.len(), designs(workload).len());
        for design in designs(workload) {
            for text in [design.family, design.idea, design.reader_cost, design.limits] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}: {text:?}", design.name);
            }
        }
    }
}
