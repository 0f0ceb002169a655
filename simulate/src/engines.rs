//! The engines of kernels by name, with the numbers that each lets be changed.

use grace::steps::Intact;

use crate::kernel::on_demand::{self, OnDemand};
use crate::kernel::token::v2;
use crate::kernel::tree::options::NO_PART;
use crate::kernel::tree::{Options, Tree, Variant};
use crate::kernel::{Engine, Start, poll, tick, token};
use crate::parameter::{self, Parameter, get, parameter};
use crate::setup::{Impossible, Setup};

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Poll,
    PollPerCpu,
    Tick,
    Token,
    TokenRelay,
    Tree315,
    TreeV0,
    TreeV1,
    TreeV2,
    TreeToday,
    OnDemand,
}

/// An engine by its name, and its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EngineKind {
    kind: Kind,
    name: &'static str,
    what: &'static str,
    parameters: Vec<Parameter>,
}

const JIFFIES: (u64, u64) = (1, 1_000_000);
const JIFFIES_OR_DEFAULT: (u64, u64) = (0, 1_000_000);
const COUNT: (u64, u64) = (1, 1 << 40);

const RELAY: [Parameter; 2] = [
    parameter("segment", 16, (1, 4_096), "CPUs in a row that hand the token on"),
    parameter("rest_jiffies", 1, JIFFIES_OR_DEFAULT, "rest of the token before a nudge"),
];

/// What all trees have, as it was in the year of this variant. 0 stands for what the kernel
/// computes from the tick and the number of CPUs.
const fn tree(variant: Variant) -> [Parameter; 9] {
    // What is taken from here depends on neither of these two.
    let usual = Options::new(variant, 100, 1);
    [
        parameter(
            "first_fqs_jiffies",
            0,
            JIFFIES_OR_DEFAULT,
            "to the first scan; 0: as the kernel",
        ),
        parameter("next_fqs_jiffies", 0, JIFFIES_OR_DEFAULT, "between scans; 0: as the kernel"),
        parameter(
            "stall_jiffies",
            0,
            JIFFIES_OR_DEFAULT,
            "age of a stall, at half of which holdouts are interrupted; 0: as the kernel, 21 s",
        ),
        parameter(
            "blimit",
            usual.blimit as u64,
            COUNT,
            "callbacks to a pass of the softirq, at least",
        ),
        parameter(
            "ready_shift",
            usual.ready_shift as u64,
            (0, NO_PART as u64),
            "or 1 / 2^this of those that are ready; 64: no part, as in 2014",
        ),
        parameter(
            "qhimark",
            usual.qhimark,
            COUNT,
            "waiting callbacks at which that limit is lifted",
        ),
        parameter("qlowmark", usual.qlowmark, COUNT, "waiting callbacks at which it holds again"),
        parameter("leaf_fanout", usual.leaf_fanout as u64, (1, 64), "CPUs to a leaf"),
        parameter("fanout", usual.fanout as u64, (2, 64), "children of an inner node"),
    ]
}

/// The trees of 2014, all of which have the same limits.
const TREE_2014: [Parameter; 9] = tree(Variant::V3_15);
const TREE_TODAY: [Parameter; 9] = tree(Variant::Today);

const PERIOD: Parameter =
    parameter("period", 256, (1, 1 << 31), "calls of cond_resched() to a quiescent state");
const FLAG_AFTER: Parameter = parameter(
    "flag_after_jiffies",
    0,
    JIFFIES_OR_DEFAULT,
    "age at which holdouts are flagged; 0: HZ / 20",
);
const SCHED_QS: Parameter = parameter(
    "sched_qs_jiffies",
    0,
    JIFFIES_OR_DEFAULT,
    "age at which holdouts are forced; 0: as the kernel",
);
const TODAY: [Parameter; 2] = [
    SCHED_QS,
    parameter(
        "qovld",
        Options::new(Variant::Today, 100, 1).qovld,
        COUNT,
        "waiting callbacks on a CPU at which all are asked for help",
    ),
];

const ON_DEMAND: [Parameter; 8] = {
    let usual = on_demand::Parameters::DEFAULT;
    [
        parameter(
            "gather_jiffies",
            usual.gather_jiffies as u64,
            JIFFIES,
            "for which a grace period that nobody waits for is put off",
        ),
        parameter(
            "look_jiffies",
            usual.look_jiffies as u64,
            JIFFIES,
            "between looks, unless somebody is in a hurry",
        ),
        parameter(
            "back_off_jiffies",
            usual.back_off_jiffies as u64,
            JIFFIES,
            "the same two when over budget",
        ),
        parameter(
            "force_after_jiffies",
            usual.force_after_jiffies as u64,
            JIFFIES,
            "age at which holdouts are forced though nobody waits",
        ),
        parameter(
            "callbacks_at_once",
            usual.callbacks_at_once_min,
            COUNT,
            "callbacks that are run at once, at least",
        ),
        parameter(
            "callbacks_at_once_shift",
            usual.callbacks_at_once_shift as u64,
            (0, 63),
            "or 1 / 2^this of those that are ready",
        ),
        parameter(
            "backlog_objects",
            usual.backlog_objects_max,
            COUNT,
            "callbacks that may wait; expedited from three quarters on",
        ),
        parameter(
            "backlog_bytes",
            usual.backlog_bytes_max,
            COUNT,
            "bytes that they may hold; the same",
        ),
    ]
};

impl EngineKind {
    /// Every engine as it is by default.
    pub fn all() -> Vec<Self> {
        let of = |kind, name, what, groups: &[&[Parameter]]| Self {
            kind,
            name,
            what,
            parameters: groups.concat(),
        };
        vec![
            of(Kind::Poll, "poll", "rcu_poll with one list: at once, forcing all", &[]),
            of(Kind::PollPerCpu, "poll-per-cpu", "rcu_poll with lists for each CPU", &[]),
            of(Kind::Tick, "tick", "rcu_ltimer: each looks after itself on its tick", &[]),
            of(Kind::Token, "token", "rcu_sched as published: a ring and a global count", &[]),
            of(
                Kind::TokenRelay,
                "token-relay",
                "rcu_sched, version 2: segments, no count",
                &[&RELAY],
            ),
            of(Kind::Tree315, "tree-3.15", "Tree RCU before the change", &[&TREE_2014]),
            of(Kind::TreeV0, "tree-v0", "3.16-rc: cond_resched() counts", &[&TREE_2014, &[PERIOD]]),
            of(
                Kind::TreeV1,
                "tree-v1",
                "cond_resched() tests a flag",
                &[&TREE_2014, &[FLAG_AFTER]],
            ),
            of(Kind::TreeV2, "tree-v2", "holdouts are interrupted", &[&TREE_2014, &[SCHED_QS]]),
            of(Kind::TreeToday, "tree-today", "Tree RCU today", &[&TREE_TODAY, &TODAY]),
            of(
                Kind::OnDemand,
                "on-demand",
                "our own: forces when a caller waits, within a budget",
                &[&ON_DEMAND],
            ),
        ]
    }

    /// The names of all engines.
    pub fn names() -> Vec<&'static str> {
        Self::all().iter().map(|engine| engine.name).collect()
    }

    /// The engine of this name, as it is by default.
    ///
    /// # Errors
    /// If there is none: the reason lists those there are.
    pub fn named(name: &str) -> Result<Self, Impossible> {
        parameter::named("engine", Self::all(), name, Self::name)
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a line.
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The numbers that can be changed.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Changes a number.
    ///
    /// # Errors
    /// If there is none of this name, or the value is out of its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), Impossible> {
        parameter::set(self.name, &mut self.parameters, name, value)
    }

    /// An engine of this kind for that machine.
    pub fn build(&self, setup: &Setup) -> Box<dyn Engine> {
        match self.kind {
            Kind::Poll => Box::new(poll::Global::new(setup.cpus)),
            Kind::PollPerCpu => Box::new(poll::PerCpu::new(setup.cpus)),
            Kind::Tick => Box::new(tick::Tick::new(setup.cpus)),
            Kind::Token => Box::new(token::Published::new(setup.cpus)),
            Kind::TokenRelay => {
                let parameters = v2::Parameters {
                    segment: self.number("segment") as usize,
                    rest_jiffies_max: self.number("rest_jiffies") as u32,
                };
                let start = Start::default();
                Box::new(token::Relay::with(setup.cpus, parameters, start, Intact))
            }
            Kind::Tree315 | Kind::TreeV0 | Kind::TreeV1 | Kind::TreeV2 | Kind::TreeToday => {
                self.tree(setup)
            }
            Kind::OnDemand => {
                let parameters = self.on_demand_parameters();
                let start = Start::default();
                Box::new(OnDemand::with(setup.cpus, parameters, start, Intact))
            }
        }
    }

    fn number(&self, name: &str) -> u64 {
        get(&self.parameters, name)
    }

    /// Tree RCU; on a tickless machine every CPU is one of `nohz_full`.
    fn tree(&self, setup: &Setup) -> Box<dyn Engine> {
        let tree = Tree::new(self.tree_options(setup), setup.cpus);
        let tickless = if setup.tickless { 0..setup.cpus } else { 0..0 };
        Box::new(tree.with_tickless(tickless))
    }

    /// Which Tree RCU it is; the newest for what is none.
    fn variant(&self, hz: u32) -> Variant {
        match self.kind {
            Kind::Tree315 => Variant::V3_15,
            Kind::TreeV0 => Variant::V0 { period: self.number("period") as u32 },
            Kind::TreeV1 => match self.number("flag_after_jiffies") as u32 {
                0 => Variant::v1(hz),
                flag_after_jiffies => Variant::V1 { flag_after_jiffies },
            },
            Kind::TreeV2 => match self.number("sched_qs_jiffies") as u32 {
                0 => Variant::v2(hz),
                sched_qs_jiffies => Variant::V2 { sched_qs_jiffies },
            },
            _ => Variant::Today,
        }
    }

    /// The limits of its year, but for those that were set.
    fn tree_options(&self, setup: &Setup) -> Options {
        let variant = self.variant(setup.hz);
        let mut options = Options::new(variant, setup.hz, setup.cpus);
        let or = |name, usual| match self.number(name) as u32 {
            0 => usual,
            chosen => chosen,
        };
        options.first_fqs_jiffies = or("first_fqs_jiffies", options.first_fqs_jiffies);
        options.next_fqs_jiffies = or("next_fqs_jiffies", options.next_fqs_jiffies);
        options.stall_jiffies = or("stall_jiffies", options.stall_jiffies);
        if variant == Variant::Today {
            options.sched_qs_jiffies = or("sched_qs_jiffies", options.sched_qs_jiffies);
            options.qovld = self.number("qovld");
        }
        options.blimit = u32::try_from(self.number("blimit")).unwrap_or(u32::MAX);
        options.ready_shift = self.number("ready_shift") as u32;
        options.qhimark = self.number("qhimark");
        options.qlowmark = self.number("qlowmark");
        options.leaf_fanout = self.number("leaf_fanout") as u32;
        options.fanout = self.number("fanout") as u32;
        options
    }

    fn on_demand_parameters(&self) -> on_demand::Parameters {
        on_demand::Parameters {
            gather_jiffies: self.number("gather_jiffies") as u32,
            look_jiffies: self.number("look_jiffies") as u32,
            back_off_jiffies: self.number("back_off_jiffies") as u32,
            force_after_jiffies: self.number("force_after_jiffies") as u32,
            callbacks_at_once_min: self.number("callbacks_at_once"),
            callbacks_at_once_shift: self.number("callbacks_at_once_shift") as u32,
            backlog_objects_max: self.number("backlog_objects"),
            backlog_bytes_max: self.number("backlog_bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_is_found_by_its_name() {
        for engine in EngineKind::all() {
            assert_eq!(EngineKind::named(engine.name()).as_ref(), Ok(&engine));
        }
        let refused = EngineKind::named("steam").unwrap_err().to_string();
        assert!(refused.contains("poll, poll-per-cpu, tick"), "{refused}");
    }

    /// What the replay of 2014 takes.
    #[test]
    fn a_tree_has_the_limits_of_its_year_unless_others_are_set() {
        let setup = Setup { cpus: 160, hz: 1_000, ..Setup::default() };
        let variants = [
            ("tree-3.15", Variant::V3_15),
            ("tree-v0", Variant::v0()),
            ("tree-v1", Variant::v1(setup.hz)),
            ("tree-v2", Variant::v2(setup.hz)),
            ("tree-today", Variant::Today),
        ];
        for (name, variant) in variants {
            let mut engine = EngineKind::named(name).unwrap();
            let usual = Options::new(variant, setup.hz, setup.cpus);
            assert_eq!(engine.tree_options(&setup), usual, "{name}");
            engine.set("ready_shift", 3).unwrap();
            engine.set("stall_jiffies", 500).unwrap();
            let changed = Options { ready_shift: 3, stall_jiffies: 500, ..usual };
            assert_eq!(engine.tree_options(&setup), changed, "{name}");
            assert!(engine.set("ready_shift", 65).is_err());
        }
    }
}
