//! Engines under random schedules, beyond what the explorer goes through: on more CPUs, which sleep
//! or have no ticks, with floods, and with callbacks that queue callbacks. No callback runs while a
//! section of before it is open, and every callback runs in the end.

use grace::Sequence;
use grace::steps::Intact;
use kernel::engine::on_demand::{self, OnDemand};
use kernel::engine::store::Fixed;
use kernel::engine::token::{Published, Relay, v2};
use kernel::engine::tree::{Options, Tree, Variant};
use kernel::engine::{Start, poll, tick};
use proptest::prelude::*;

use crate::MAX;
use crate::world::{run, run_staying};

const VARIANTS: [Variant; 5] = [
    Variant::V3_15,
    Variant::V0 { period: 2 },
    Variant::V1 { flag_after_jiffies: 2 },
    Variant::V2 { sched_qs_jiffies: 2 },
    Variant::Today,
];

/// Limits so small that a few dozen events get at all of them.
fn small(variant: Variant, qhimark: u64) -> Options {
    Options {
        leaf_fanout: 2,
        fanout: 2,
        first_fqs_jiffies: 1,
        next_fqs_jiffies: 1,
        sched_qs_jiffies: 2,
        stall_jiffies: 12,
        blimit: 2,
        ready_shift: 2,
        qhimark,
        qlowmark: 1,
        qovld: 2 * qhimark,
        ..Options::new(variant, 100, 5)
    }
}

/// Numbers right before their wrap, and counters so narrow that they come round again and again;
/// not so narrow that they do so from one look to the next, each time.
const WRAPPING: Start = Start { number: u32::MAX - 1, counter_bits: 4 };

/// Segments of three, so that there are several, and a short one.
const SHORT: v2::Parameters = v2::Parameters { segment: 3, rest_jiffies_max: 1 };

/// Few callbacks at once, and limits that schedules come near to.
const FEW: on_demand::Parameters = on_demand::Parameters {
    callbacks_at_once_min: 2,
    back_off_jiffies: 3,
    force_after_jiffies: 4,
    backlog_objects_max: 20,
    ..on_demand::Parameters::DEFAULT
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// Tree RCU from right before the counter of grace periods wraps, and with CPUs without ticks;
    /// half of the time CPUs stay in the kernel in the end, so that only what a variant does about
    /// holdouts ends a grace period.
    #[test]
    fn nothing_runs_early_and_everything_runs(
        engine in 0..6 + 2 * VARIANTS.len(),
        cpus in 1..=8_usize,
        tickless in 0..4_usize,
        qhimark in 2..20_u64,
        schedule in prop::collection::vec(any::<(u8, u8)>(), 0..300),
    ) {
        let (store, none, schedule) = (Fixed::<MAX>(cpus), 0..0, &*schedule);
        let outcome = match engine {
            0 => run(poll::Global::with(store, WRAPPING, Intact), cpus, none, schedule),
            1 => run(poll::PerCpu::with(store, WRAPPING, Intact), cpus, none, schedule),
            2 => run(tick::Tick::with(store, WRAPPING, Intact), cpus, none, schedule),
            3 => run(Published::with(store, WRAPPING, Intact), cpus, none, schedule),
            4 => run(Relay::with(store, SHORT, WRAPPING, Intact), cpus, none, schedule),
            5 => run(OnDemand::with(store, FEW, WRAPPING, Intact), cpus, none, schedule),
            tree => {
                let (variant, stays) = ((tree - 6) / 2, tree % 2 == 1);
                let options = small(VARIANTS[variant], qhimark);
                let start = Sequence::after((u64::MAX >> 1) - 2);
                let tickless = cpus - tickless.min(cpus)..cpus;
                let tree = Tree::starting_at(start, options, store, Intact);
                let tree = tree.with_tickless(tickless.clone());
                let run = if stays { run_staying } else { run };
                run(tree, cpus, tickless, schedule)
            }
        };
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}
