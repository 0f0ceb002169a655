//! What there is to choose about Tree RCU: the variant of its story, and its limits.
//!
//! The limits are those of the variant's year, as `kernel/rcu/tree.c` of 2014 and of today have
//! them; the replay of 2014 and the engines `tree-...` both take them from [`Options::new`]:
//!
//! | limit | 2014 | today |
//! |---|---|---|
//! | `blimit`, `qhimark`, `qlowmark` | 10, 10,000, 100 | the same |
//! | first scan, next scan | from HZ and the number of CPUs | the same |
//! | stall | 21 s | the same |
//! | CPUs to a leaf, children of a node | 16, 64 | the same |
//! | part of the ready callbacks in a pass | none | 1 in 128 (`rcu_divisor`, 2019) |
//! | holdouts are asked for help | v2 after HZ / 20 (so v1); else never | after HZ / 10 or more |
//! | all of them are, from so many callbacks on | never | 20,000 (`qovld`, 2019) |

/// How a grace period deals with CPUs that pass no quiescent state by themselves.
///
/// All variants take context switches, ticks in user mode or idle, and extended quiescent states
/// that the forcing scan finds. They differ in what `cond_resched()` does, and in what the scan
/// does about the holdouts of an old grace period. (J. Corbet: RCU, `cond_resched()`, and
/// performance regressions, LWN 603252, 2014; `kernel/rcu/tree.c` for the last.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Linux 3.15: `cond_resched()` does nothing for the grace period.
    V3_15,
    /// 3.16-rc: `cond_resched()` counts its calls on each CPU; every `period`-th call is a
    /// quiescent state.
    V0 {
        /// The number of calls per quiescent state. 256 as released; 0 counts as 1.
        period: u32,
    },
    /// The first remedy: `cond_resched()` tests a flag, which the scan sets on holdouts of a grace
    /// period that has reached this age.
    V1 {
        /// The age from which holdouts are flagged, in jiffies.
        flag_after_jiffies: u32,
    },
    /// The remedy that was merged: `cond_resched()` tests nothing again; holdouts of a grace
    /// period that has reached this age, or half the stall time, are flagged and sent through the
    /// scheduler by an interrupt.
    V2 {
        /// `jiffies_till_sched_qs`.
        sched_qs_jiffies: u32,
    },
    /// Today's kernel. Once the grace period is older than [`Options::sched_qs_jiffies`],
    /// `cond_resched()`, the scheduler and the tick are asked for help. Once it is twice as old, or
    /// if callbacks pile up somewhere, they must help by an extended quiescent state, which the
    /// next scan finds. Tickless holdouts are interrupted once per three times that age; after half
    /// the stall time all holdouts are, once per that time.
    Today,
}

impl Variant {
    /// [`Variant::V0`] with the period that was released.
    pub const fn v0() -> Self {
        Self::V0 { period: 256 }
    }

    /// [`Variant::V1`] with the age that [`v2`](Self::v2) has: the source names none.
    pub const fn v1(hz: u32) -> Self {
        Self::V1 { flag_after_jiffies: at_least_one(hz / 20) }
    }

    /// [`Variant::V2`] with the default of its time, a twentieth of a second.
    pub const fn v2(hz: u32) -> Self {
        Self::V2 { sched_qs_jiffies: at_least_one(hz / 20) }
    }
}

/// From this [`Options::ready_shift`] on, a pass takes no part of the ready callbacks.
pub const NO_PART: u32 = 64;

/// The limits. Zeros where one makes no sense count as 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Which Tree RCU it is.
    pub variant: Variant,
    /// CPUs to a leaf, 1 to 64 (`CONFIG_RCU_FANOUT_LEAF`).
    pub leaf_fanout: u32,
    /// Children of an inner node, 2 to 64 (`CONFIG_RCU_FANOUT`).
    pub fanout: u32,
    /// From the beginning of a grace period to its first scan.
    pub first_fqs_jiffies: u32,
    /// From one scan to the next.
    pub next_fqs_jiffies: u32,
    /// The age from which on [`Variant::Today`] asks holdouts for help.
    pub sched_qs_jiffies: u32,
    /// The age at which the kernel complains of a stall. At half of it holdouts are interrupted.
    pub stall_jiffies: u32,
    /// Callbacks to a pass of the softirq, at least.
    pub blimit: u32,
    /// And at least this part of those that are ready: they are shifted right by so much. From
    /// [`NO_PART`] on there is no such part.
    pub ready_shift: u32,
    /// So many callbacks more than when it was last looked at: the limit of a pass is lifted, and a
    /// scan made at once.
    pub qhimark: u64,
    /// So few callbacks: the limit holds again.
    pub qlowmark: u64,
    /// So many callbacks on one CPU: [`Variant::Today`] asks all holdouts for help at once.
    pub qovld: u64,
}

impl Options {
    /// The kernel's defaults in the year of this variant, as it computes them from the tick and
    /// the number of CPUs.
    pub const fn new(variant: Variant, hz: u32, cpus: usize) -> Self {
        let large = (cpus / 256) as u32;
        let fqs = 1 + (hz > 250) as u32 + (hz > 500) as u32 + large;
        let sched_qs = hz / 10 + large;
        Self {
            variant,
            leaf_fanout: 16,
            fanout: 64,
            first_fqs_jiffies: fqs,
            next_fqs_jiffies: fqs,
            sched_qs_jiffies: if sched_qs > 3 * fqs { sched_qs } else { 3 * fqs },
            stall_jiffies: 21 * hz,
            blimit: 10,
            // The kernels of 2014 had no such part.
            ready_shift: if matches!(variant, Variant::Today) { 7 } else { NO_PART },
            qhimark: 10_000,
            qlowmark: 100,
            qovld: 20_000,
        }
    }

    /// The same for another engine, which is helped in the scheduler whatever the variant.
    pub(crate) const fn helped(mut self, is_other: bool) -> Self {
        if is_other && !matches!(self.variant, Variant::V2 { .. }) {
            self.variant = Variant::V2 { sched_qs_jiffies: self.sched_qs_jiffies };
        }
        self
    }
}

/// 1 in place of 0.
pub(super) const fn at_least_one(jiffies: u32) -> u32 {
    if jiffies == 0 { 1 } else { jiffies }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_tick_and_the_number_of_cpus() {
        let fqs = |hz, cpus| {
            let options = Options::new(Variant::Today, hz, cpus);
            (options.first_fqs_jiffies, options.next_fqs_jiffies, options.sched_qs_jiffies)
        };
        assert_eq!(fqs(100, 8), (1, 1, 10));
        assert_eq!(fqs(250, 8), (1, 1, 25));
        assert_eq!(fqs(300, 8), (2, 2, 30));
        assert_eq!(fqs(1_000, 8), (3, 3, 100));
        assert_eq!(fqs(1_000, 4_096), (19, 19, 116));
        assert_eq!(fqs(100, 4_096), (17, 17, 51), "the third scan is later");
        assert_eq!(Variant::v2(1_000), Variant::V2 { sched_qs_jiffies: 50 });
        assert_eq!(Variant::v1(10), Variant::V1 { flag_after_jiffies: 1 });
    }

    #[test]
    fn kernels_of_2014_run_no_part_of_the_ready_callbacks() {
        let today = Options::new(Variant::Today, 1_000, 160);
        assert_eq!(today.ready_shift, 7);
        for variant in [Variant::V3_15, Variant::v0(), Variant::v1(1_000), Variant::v2(1_000)] {
            // All else that the two have in common is as it was.
            let of_2014 = Options::new(variant, 1_000, 160);
            assert_eq!(of_2014, Options { variant, ready_shift: NO_PART, ..today });
        }
    }
}
