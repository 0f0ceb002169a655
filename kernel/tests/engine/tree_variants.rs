//! What the variants of Tree RCU do about a CPU that stays in the kernel, event by event; and
//! how many callbacks run at once.

use grace::steps::Without;
use grace::{Sequence, Urgency};
use kernel::engine::store::Fixed;
use kernel::engine::tree::{Options, STEPS_FOR_SPEED, Tree, Variant};
use kernel::engine::{Access, Callback, Engine, Line, Mode};

use crate::MAX;
use crate::recorder::{Recorder, callback};

const CALLBACK: Callback = callback(Urgency::Background);
const HZ: u32 = 100;

/// CPU 1 in the kernel, where it has noticed the grace period that CPU 0 asked for; the
/// latter has reported already.
fn one_holdout(variant: Variant) -> (Tree<Fixed<MAX>>, Recorder) {
    let (mut tree, mut log) =
        (Tree::new(Options::new(variant, HZ, 2), Fixed::<MAX>(2)), Recorder::default());
    tree.queue(0, CALLBACK, &mut log);
    tree.tick(0, Mode::Kernel, &mut log);
    tree.softirq(0, &mut log);
    tree.context_switch(0, &mut log);
    tree.softirq(0, &mut log);
    tree.tick(1, Mode::Kernel, &mut log);
    tree.softirq(1, &mut log);
    assert_eq!((log.began, log.ended, log.timers.last()), (1, 0, Some(&1)));
    assert!(tree.is_holdout(0, 1) && !tree.is_holdout(0, 0));
    (tree, log)
}

/// Jiffies of scans until CPU 1 is first sent through the scheduler, or `None` within
/// `limit`.
fn first_resched(tree: &mut Tree<Fixed<MAX>>, log: &mut Recorder, limit: u32) -> Option<u32> {
    (1..=limit).find(|_| {
        log.timers.clear();
        tree.timer(0, log);
        assert_eq!(log.timers, [1], "a grace period in progress is scanned again");
        log.resched.contains(&1)
    })
}

#[test]
fn v3_15_waits_for_half_the_stall_time() {
    let (mut tree, mut log) = one_holdout(Variant::V3_15);
    for _ in 0..10_000 {
        tree.cond_resched(1, &mut log);
    }
    tree.softirq(1, &mut log);
    assert!(tree.is_holdout(0, 1));
    assert_eq!(first_resched(&mut tree, &mut log, 5_000), Some(21 * HZ / 2));
    tree.context_switch(1, &mut log);
    tree.tick(1, Mode::Kernel, &mut log);
    tree.softirq(1, &mut log);
    assert_eq!((log.ended, tree.waiting(0)), (1, 1));
    tree.tick(0, Mode::Kernel, &mut log);
    tree.softirq(0, &mut log);
    assert_eq!((log.invoked.as_slice(), tree.waiting(0)), ([(0, 1)].as_slice(), 0));
}

#[test]
fn v0_counts_every_256th_cond_resched() {
    let (mut tree, mut log) = one_holdout(Variant::v0());
    for _ in 0..255 {
        tree.cond_resched(1, &mut log);
        tree.softirq(1, &mut log);
    }
    assert!(tree.is_holdout(0, 1));
    tree.cond_resched(1, &mut log);
    tree.softirq(1, &mut log);
    assert_eq!(log.ended, 1);
}

#[test]
fn v1_flags_hold_outs_and_the_next_scan_finds_them() {
    let (mut tree, mut log) = one_holdout(Variant::V1 { flag_after_jiffies: 4 });
    for _ in 0..3 {
        tree.timer(0, &mut log);
        tree.cond_resched(1, &mut log);
    }
    tree.softirq(1, &mut log);
    assert!(tree.is_holdout(0, 1), "not flagged yet");
    tree.timer(0, &mut log);
    tree.cond_resched(1, &mut log);
    assert!(tree.is_holdout(0, 1));
    tree.timer(0, &mut log);
    assert_eq!((log.ended, log.resched.len()), (1, 0));
}

#[test]
fn v2_interrupts_hold_outs_of_its_age_once() {
    let (mut tree, mut log) = one_holdout(Variant::v2(HZ));
    tree.cond_resched(1, &mut log);
    assert_eq!(first_resched(&mut tree, &mut log, 100), Some(HZ / 20));
    for _ in 0..100 {
        tree.timer(0, &mut log);
    }
    assert_eq!(log.resched, [1], "flagged already");
    tree.context_switch(1, &mut log);
    tree.timer(0, &mut log);
    assert_eq!(log.ended, 1, "a momentary extended quiescent state, seen by the scan");
    // However long it is set to wait, half the stall time is the limit.
    let (mut tree, mut log) = one_holdout(Variant::V2 { sched_qs_jiffies: u32::MAX });
    assert_eq!(first_resched(&mut tree, &mut log, 5_000), Some(21 * HZ / 2));
}

#[test]
fn today_asks_kindly_first_and_then_for_more() {
    let limit = Options::new(Variant::Today, HZ, 2).sched_qs_jiffies;
    // Urgent: the tick sends it through the scheduler.
    let (mut tree, mut log) = one_holdout(Variant::Today);
    for _ in 0..=limit {
        tree.tick(1, Mode::Kernel, &mut log);
        assert!(log.resched.is_empty(), "{:?}", log.resched);
        tree.timer(0, &mut log);
    }
    tree.tick(1, Mode::Kernel, &mut log);
    assert_eq!(log.resched, [1]);
    // Heavy: cond_resched() is seen by the scan, though its CPU does not report.
    let (mut tree, mut log) = one_holdout(Variant::Today);
    for _ in 0..=2 * limit {
        tree.cond_resched(1, &mut log);
        tree.timer(0, &mut log);
    }
    assert!(tree.is_holdout(0, 1));
    tree.cond_resched(1, &mut log);
    tree.timer(0, &mut log);
    assert_eq!((log.ended, log.resched.len()), (1, 0));
    // It does not even call cond_resched(): past half the stall time it is interrupted, again and
    // again.
    let (mut tree, mut log) = one_holdout(Variant::Today);
    assert_eq!(first_resched(&mut tree, &mut log, 5_000), Some(21 * HZ / 2 + 1));
    for _ in 0..=limit {
        tree.timer(0, &mut log);
    }
    assert_eq!(log.resched, [1, 1]);
}

#[test]
fn today_interrupts_a_tickless_hold_out_at_once_and_then_seldom() {
    let options = Options::new(Variant::Today, HZ, 2);
    let mut tree = Tree::new(options, Fixed::<MAX>(2)).with_tickless([1]);
    let mut log = Recorder::default();
    tree.queue(0, CALLBACK, &mut log);
    tree.softirq(0, &mut log);
    tree.timer(0, &mut log);
    assert!(log.resched.is_empty(), "the first scan takes a snapshot: {:?}", log.resched);
    for _ in 0..=3 * options.sched_qs_jiffies {
        tree.timer(0, &mut log);
        assert_eq!(log.resched, [1]);
    }
    tree.timer(0, &mut log);
    assert_eq!(log.resched, [1, 1]);
    assert!(log.raised.contains(&1), "its tick is forced on");
}

/// CPU 1 without ticks in the kernel, where it has not noticed the grace period that CPU 0 has
/// asked for, when the second scan has found it.
fn tickless_holdout(variant: Variant) -> (Tree<Fixed<MAX>>, Recorder) {
    let options = Options::new(variant, HZ, 2);
    let mut tree = Tree::new(options, Fixed::<MAX>(2)).with_tickless([1]);
    let mut log = Recorder::default();
    tree.queue(0, CALLBACK, &mut log);
    tree.softirq(0, &mut log);
    (0..2).for_each(|_| tree.timer(0, &mut log));
    assert!(log.raised.contains(&1), "{variant:?}: it has not noticed");
    tree.softirq(1, &mut log);
    log.raised.clear();
    (tree, log)
}

/// The softirq that a scan raises makes it aware; its own, that it has passed, reports.
#[test]
fn a_tickless_hold_out_is_told_once_and_reports_by_itself() {
    for variant in [Variant::V3_15, Variant::v0(), Variant::v1(HZ), Variant::v2(HZ), Variant::Today]
    {
        let (mut tree, mut log) = tickless_holdout(variant);
        (0..5 * HZ).for_each(|_| tree.timer(0, &mut log));
        assert!(!log.raised.contains(&1), "{variant:?}: it has noticed");
        tree.context_switch(1, &mut log);
        assert!(log.raised.contains(&1), "{variant:?}: no tick finds that it has passed");
        tree.softirq(1, &mut log);
        assert!(!tree.is_holdout(0, 1), "{variant:?}");
    }
}

/// By the interrupt alone only its pass through the scheduler would.
#[test]
fn today_lets_the_next_cond_resched_of_a_tickless_hold_out_count() {
    let (mut tree, mut log) = tickless_holdout(Variant::Today);
    tree.cond_resched(1, &mut log);
    tree.softirq(1, &mut log);
    assert!(!tree.is_holdout(0, 1));
}

#[test]
fn the_limit_of_a_pass_grows_with_what_is_ready_and_is_lifted_by_a_flood() {
    for (variant, queued, passes) in [
        (Variant::Today, 5, vec![5]),
        (Variant::Today, 25, vec![10, 10, 5]),
        (Variant::Today, 2_560, vec![20, 19, 19]),
        // In 2014 it did not grow.
        (Variant::V3_15, 2_560, vec![10, 10, 10]),
        (Variant::v2(HZ), 2_560, vec![10, 10, 10]),
    ] {
        let (mut tree, mut log) =
            (Tree::new(Options::new(variant, HZ, 1), Fixed::<MAX>(1)), Recorder::default());
        for _ in 0..queued {
            tree.queue(0, CALLBACK, &mut log);
        }
        tree.softirq(0, &mut log);
        tree.context_switch(0, &mut log);
        for _ in 0..3 {
            tree.softirq(0, &mut log);
        }
        let counts: Vec<_> = log.invoked.iter().map(|&(_, count)| count).collect();
        assert!(counts.starts_with(&passes), "{queued}: {counts:?}");
    }
    let mut tree = Tree::new(Options::new(Variant::Today, HZ, 1), Fixed::<MAX>(1));
    let mut log = Recorder::default();
    for _ in 0..=10_000 {
        tree.queue(0, CALLBACK, &mut log);
    }
    assert_eq!(log.began, 1, "the 10,001st begins a grace period without waiting for a tick");
    tree.queue(0, CALLBACK, &mut log);
    tree.context_switch(0, &mut log);
    tree.softirq(0, &mut log);
    // The last one was queued in mid grace period.
    assert_eq!(log.invoked, [(0, 10_001)]);
}

#[test]
fn a_flood_asks_all_hold_outs_of_today_for_help_at_once() {
    let (mut tree, mut log) = one_holdout(Variant::Today);
    for _ in 0..31_000 {
        tree.queue(0, CALLBACK, &mut log);
        tree.cond_resched(1, &mut log);
    }
    // A scan at each 10,000 of them: the first takes a snapshot, the second finds 20,000 waiting.
    assert_eq!(log.ended, 1, "no jiffy has gone by");
}

/// The step that only saves time: without it the CPU asks again, when it finds
/// that its grace period is over.
#[test]
fn what_is_asked_for_amid_a_grace_period_begins_at_its_end() {
    let options = Options::new(Variant::Today, HZ, 2);
    let begun = |step| {
        let start = Sequence::after(0);
        let mut tree = Tree::starting_at(start, options, Fixed::<MAX>(2), Without(step));
        let mut log = Recorder::default();
        for cpu in [0, 1] {
            tree.queue(cpu, CALLBACK, &mut log);
            tree.tick(cpu, Mode::Kernel, &mut log);
            tree.softirq(cpu, &mut log);
        }
        for cpu in [1, 0] {
            tree.context_switch(cpu, &mut log);
            tree.softirq(cpu, &mut log);
        }
        (log.began, log.ended)
    };
    assert_eq!(begun("no such step"), (2, 1));
    assert_eq!(begun(STEPS_FOR_SPEED[0]), (1, 1));
}

/// How often a node of the tree was locked.
fn node_locks(log: &Recorder) -> usize {
    log.touched.iter().filter(|touched| matches!(touched, (Line::Node(_), Access::Lock))).count()
}

#[test]
fn four_thousand_cpus_take_few_locks_each() {
    // So large an array needs a large stack.
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    thread.spawn(four_thousand_cpus).expect("it starts").join().expect("it holds");
}

fn four_thousand_cpus() {
    let cpus = 4_096;
    let mut tree = Tree::new(Options::new(Variant::Today, HZ, cpus), Fixed::<4_096>(cpus));
    let mut log = Recorder::default();
    tree.queue(77, CALLBACK, &mut log);
    tree.softirq(77, &mut log);
    assert_eq!(node_locks(&log), 1 + 2 + 261, "asked for on three levels, begun on all nodes");
    log.touched.clear();
    for cpu in 0..cpus {
        tree.tick(cpu, Mode::User, &mut log);
        tree.softirq(cpu, &mut log);
        tree.tick(cpu, Mode::User, &mut log);
        tree.softirq(cpu, &mut log);
    }
    assert_eq!(log.ended, 1);
    // Each but the first notices and reports; 256 + 4 go up; the end is reported to all nodes, and
    // noticed.
    assert_eq!(node_locks(&log), 2 * cpus - 1 + 260 + 261);
    assert!(!tree.is_holdout(0, 77) && !tree.is_holdout(0, cpus) && !tree.is_holdout(1, 77));
}
