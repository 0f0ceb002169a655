//! Every design, on every workload, is right; and being wrong is noticed.

mod wrong;

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use super::*;
use crate::cases::loops::tests::Forgets;
use crate::cases::object::turn;
use crate::cases::tools::Random;
use crate::common::threads::threads;
use crate::freed::drain;
use crate::serve::Copied;
use crate::shapes::*;
use crate::slices::Part;

const KEYS: u32 = 100;
const OPERATIONS_PER_THREAD: u64 = 6000;

/// Designs that keep some of what was replaced until they are dropped themselves, or (crossbeam)
/// as long as other users of the process-wide collector are pinned.
const FREE_LATE: [&str; 3] = ["crossbeam-epoch", "seize", "papaya"];

/// The plan, with removals where the workload has them: every third change.
fn plan_of(workload: Workload) -> Plan {
    let mut plan = plan();
    if workload == Workload::Churn {
        let removing = |(number, operation): (usize, &Operation)| match operation.is_update() {
            true if number.is_multiple_of(3) => Operation::remove(operation.key()),
            _ => *operation,
        };
        let threads = plan.operations.iter();
        let of = threads.map(|one| one.iter().enumerate().map(removing).collect());
        plan.operations = of.collect();
    }
    plan
}

/// Two threads that read and update, in the order of a fixed generator.
fn plan() -> Plan {
    let mut random = Random::new(0, 1);
    let mut operation = || {
        let key = random.below(KEYS as usize) as u32;
        if random.below(4) == 0 { Operation::update(key) } else { Operation::read(key) }
    };
    Plan {
        keys: (0..KEYS).map(|i| format!("/some/path/{i}").into_bytes().into()).collect(),
        value_bytes: 64,
        work: 20,
        operations: (0..2).map(|_| (0..997).map(|_| operation()).collect()).collect(),
        limit: 40,
    }
}

/// What so many operations of each thread did.
struct Outcome {
    updates: u64,
    checksum_errors: u64,
}

/// Has each thread do so many operations, however long that takes.
fn round_of(prepared: &dyn Prepared, plan: &Plan, operations_per_thread: u64) -> Outcome {
    let work = |me| {
        let mut seat = Seat::new(me);
        prepared.work(plan, &Part::alone(me, operations_per_thread), &mut seat);
        (seat.updates, seat.checksum_errors)
    };
    let done = threads(plan.operations.len(), work);
    let wrong_at_rest = prepared.settle();
    Outcome {
        updates: done.iter().map(|(updates, _)| updates).sum(),
        checksum_errors: done.iter().map(|(_, errors)| errors).sum::<u64>() + wrong_at_rest,
    }
}

/// What each thread does, in its order.
fn done(operations: &[Operation]) -> impl Iterator<Item = &Operation> {
    operations.iter().cycle().take(OPERATIONS_PER_THREAD as usize)
}

/// The serial numbers that `key` may end with: that of the last update of any thread to it, or
/// none where that was its removal.
fn last_serials(plan: &Plan, workload: Workload, key: u32) -> HashSet<Option<u32>> {
    let mut last = HashSet::new();
    for (thread, operations) in plan.operations.iter().enumerate() {
        let updates = done(operations).filter(|operation| operation.is_update());
        let mine = |operation: &Operation| workload == Workload::Config || operation.key() == key;
        let numbered = (1..).zip(updates).filter(|(_, operation)| mine(operation));
        last.extend(numbered.last().map(|(number, operation)| {
            (!operation.is_remove()).then_some((thread as u32 + 1) << 24 | number)
        }));
    }
    if last.is_empty() { HashSet::from([Some(0)]) } else { last }
}

fn each_design(check: impl Fn(Workload, &'static Design, &Plan)) {
    for workload in Workload::ALL {
        let plan = plan_of(workload);
        assert!(designs(workload).len() >= 3, "{workload:?} is no choice");
        for design in designs(workload) {
            // Readers of other tests would hold up what is freed in this one.
            let _turn = turn();
            check(workload, design, &plan);
        }
    }
}

/// The values of the beginning, and those that the operations make.
fn values_made(plan: &Plan, workload: Workload) -> u64 {
    let makes = |operation: &&Operation| operation.is_update() && !operation.is_remove();
    let made: usize = plan.operations.iter().map(|one| done(one).filter(makes).count()).sum();
    let at_first = match workload {
        Workload::Counter | Workload::ExactCounter | Workload::LimitCounter => return 0,
        Workload::Config => 1,
        Workload::Queue => 1000,
        Workload::Table | Workload::Churn | Workload::Ids => u64::from(KEYS),
    };
    at_first + made as u64
}

#[test]
fn every_design_reads_whole_values_shows_the_last_updates_and_frees_all_in_the_end() {
    each_design(|workload, design, plan| {
        let of = format!("{workload:?} {}", design.name);
        let prepared = (design.make)(plan);
        let freed = prepared.freed();
        let outcome = round_of(&*prepared, plan, OPERATIONS_PER_THREAD);
        assert_eq!(outcome.checksum_errors, 0, "{of}");
        let updates = |operations| done(operations).filter(|one| one.is_update()).count();
        let updates: usize = plan.operations.iter().map(|one| updates(one)).sum();
        assert_eq!(outcome.updates, updates as u64, "{of}");
        if [Workload::Table, Workload::Churn, Workload::Config].contains(&workload) {
            for (number, key) in (0..).zip(plan.keys.iter()) {
                let serial = prepared.serial(key);
                let is_last = last_serials(plan, workload, number).contains(&serial);
                assert!(is_last, "{of}: key {number} ended with update {serial:x?}");
            }
        }
        // What is copied is no value to free.
        let is_copied = design.value_bytes_max.is_some();
        let gives_up_one_each =
            [Workload::Table, Workload::Config, Workload::Ids].contains(&workload);
        // Most do when asked.
        if gives_up_one_each && !is_copied && !FREE_LATE.contains(&design.name) {
            assert_eq!(freed(), outcome.updates, "{of}");
        }
        drop(prepared);
        let made = if is_copied { 0 } else { values_made(plan, workload) };
        if design.ours {
            // What was in the design itself when it was dropped is retired as the rest.
            ::quiescence::hazard::barrier();
            ::quiescence::barrier();
        }
        if design.name == "crossbeam-epoch" {
            // It has no barrier, and its collector is shared with the tests that run meanwhile: it
            // is asked again and again, and far more often than their whole run takes.
            drain(
                10_000_000,
                || made.abs_diff(freed()),
                || {
                    ::crossbeam_epoch::pin().flush();
                    std::thread::yield_now();
                },
            );
        }
        assert_eq!(freed(), made, "{of} leaks");
    });
}

#[test]
fn a_race_gives_every_design_figures_or_a_reason_and_can_be_repeated() {
    each_design(|workload, design, plan| {
        let contender = Contender::filled(design, plan);
        let mut host = crate::host::Quiet::default();
        for round in 0..2 {
            let mut series = Series::new(design);
            let run = race(&mut [(&contender, &mut series)], plan, 5, (1, round), &mut host);
            assert_eq!(series.checksum_errors, 0, "{workload:?} {}", design.name);
            assert_ne!(series.ns.is_empty(), series.missing.is_none(), "{series:?}");
            assert!(series.ns.len() <= series.cpu_ns.len() && run.rows == 1, "{series:?}");
            host.stops.store(true, Ordering::Relaxed);
        }
    });
}

/// No update was longer than 2 us, since the histogram was told to drop what is beyond its room.
#[test]
fn a_long_update_is_as_long_as_it_was() {
    let mut series = Series::new(&designs(Workload::Table)[0]);
    let mut seat = Seat::new(0);
    seat.update_ns = vec![(3, 700), (3, 5_000_000), (4, 9_000_000)];
    series.add_seat(seat, &[1, 3]);
    let (count, max) = (series.update_ns.len(), series.update_ns.max());
    assert!(count == 2 && (4_990_000..5_010_000).contains(&max), "{count}, {max}");
}

#[test]
fn the_file_describes_each_design_and_nothing_else() {
    let advised = rivals::all().filter(|rival| rival.is_advised()).map(|rival| rival.name);
    let advised: HashSet<&str> = advised.collect();
    for name in &advised {
        assert!(KNOWN.designs.contains_key(name), "{name} is not described");
    }
    for (name, about) in &KNOWN.designs {
        assert!(advised.contains(name) || rivals::left_out(name).is_some(), "{name} is no design");
        assert!(KNOWN.families.contains(&about.family), "{name}: {}", about.family);
    }
}

#[test]
fn names_are_unique_and_descriptions_are_one_line() {
    for (number, workload) in Workload::ALL.into_iter().enumerate() {
        assert_eq!(workload as usize, number, "the list is in the order of the declaration");
        let names: HashSet<_> = designs(workload).iter().map(|design| design.name).collect();
        assert_eq!(names.len(), designs(workload).len());
        for design in designs(workload) {
            let About { family, idea, reader_cost, limits } = *design.about;
            for text in [family, idea, reader_cost, limits] {
                assert!(!text.is_empty() && !text.contains('\n'), "{}: {text:?}", design.name);
            }
            assert!(reader_cost.starts_with(char::is_uppercase), "{}: {reader_cost}", design.name);
            let lines = design.program.lines().count();
            assert!((5..=22).contains(&lines), "{workload:?} {}: {lines} lines", design.name);
        }
    }
}

/// It grants more than the limit.
impl Limiting for Forgets {
    fn try_take(&self, _limit: u64) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn give(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Loses what does not fit.
struct Loses(std::sync::Mutex<Vec<Value>>);

impl Queueing for Loses {
    fn new() -> Self {
        Self(Default::default())
    }

    fn push(&self, value: Value) {
        let mut values = self.0.lock().unwrap();
        if values.len() < 500 {
            values.push(value);
        }
    }

    fn pop(&self) -> Option<Value> {
        self.0.lock().unwrap().pop()
    }
}

/// Ids without generations: that of a value that is gone finds the next one in its slot.
struct Reuses(std::sync::Mutex<Vec<Option<Value>>>);

impl Ids for Reuses {
    fn new() -> Self {
        Self(Default::default())
    }

    fn insert(&self, value: Value) -> u64 {
        let mut slots = self.0.lock().unwrap();
        slots.push(Some(value));
        // Every 64th time the id of another value.
        let index = slots.len() as u64 - 1;
        if index % 64 == 63 { index - 1 } else { index }
    }

    fn remove(&self, id: u64) -> bool {
        self.0.lock().unwrap()[id as usize].take().is_some()
    }

    fn read<R>(&self, id: u64, look: impl FnOnce(&Value) -> R) -> Option<R> {
        self.0.lock().unwrap()[id as usize].as_ref().map(look)
    }
}

#[test]
fn designs_with_a_value_for_each_key_say_what_their_index_is() {
    let of = |workload, name: &str| {
        designs(workload).iter().find(|design| design.name == name).and_then(|one| one.index)
    };
    assert_eq!(of(Workload::Table, "quiescence"), Some(KeyIndex::Fixed));
    assert_eq!(of(Workload::Churn, "quiescence"), Some(KeyIndex::Buckets));
    assert_eq!(of(Workload::Churn, "quiescence-hashmap"), Some(KeyIndex::Own));
    assert_eq!(of(Workload::Config, "quiescence"), None);
    assert_eq!(of(Workload::Churn, "mutex-per-value"), None);
    assert_eq!(left_out_by_churn(), ["mutex-per-value"]);
}

/// Every second write leaves the last word as it was.
struct HalfWritten(std::sync::Mutex<[u64; WORDS]>);

impl Copied<[u64; WORDS]> for HalfWritten {
    fn new(words: [u64; WORDS]) -> Self {
        Self(words.into())
    }

    fn read(&self) -> [u64; WORDS] {
        *self.0.lock().unwrap()
    }

    fn write(&self, words: [u64; WORDS]) {
        let mut place = self.0.lock().unwrap();
        let kept = if words[0].is_multiple_of(2) { place.len() - 1 } else { place.len() };
        place[..kept].copy_from_slice(&words[..kept]);
    }
}

#[test]
fn each_design_that_is_wrong_is_noticed() {
    let plan = plan();
    let over = [Operation::update(0), Operation::update(0), Operation::read(0)];
    let limited = Plan { limit: 1, operations: [over.into()].into(), ..plan.clone() };
    let wrong: [(&str, Make, &Plan, u64); 9] = [
        ("frees at once", Ready::<Keyed<wrong::FreesAtOnce<false>, false>>::boxed, &plan, 2000),
        ("frees a key's", Ready::<Keyed<wrong::FreesAtOnce<true>, false>>::boxed, &plan, 20_000),
        ("tears", Ready::<Keyed<wrong::Tears<false>, false>>::boxed, &plan, 2000),
        ("tears a key's", Ready::<Keyed<wrong::Tears<true>, false>>::boxed, &plan, 20_000),
        ("forgets a count", Ready::<Counted<Forgets>>::boxed, &plan, 2000),
        ("exceeds its limit", Ready::<Bounded<Forgets>>::boxed, &limited, 300),
        ("loses a value", Ready::<Queued<Loses>>::boxed, &plan, 100),
        ("finds the value of another id", Ready::<Numbered<Reuses>>::boxed, &plan, 2000),
        ("copies halves of two writes", Ready::<Copies<HalfWritten>>::boxed, &plan, 100),
    ];
    for (what, make, plan, each) in wrong {
        assert!(round_of(&*make(plan), plan, each).checksum_errors > 0, "{what}");
    }
}
