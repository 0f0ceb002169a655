//! The engines of kernels by name, with the parameters of each (`engines.toml`).

use std::sync::LazyLock;

use grace::Sequence;
use grace::steps::Steps;
use serde::Deserialize;

use crate::Heap;
use crate::parameter::{self, Choice};
use crate::setup::Setup;
use kernel::engine::on_demand::{self, OnDemand};
use kernel::engine::token::v2;
use kernel::engine::tree::{Options, Tree, Variant};
use kernel::engine::{Engine, Start, poll, tick, token};

/// Which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`poll::Global`].
    Poll,
    /// [`poll::PerCpu`].
    PollPerCpu,
    /// [`tick::Tick`].
    Tick,
    /// [`token::Published`].
    Token,
    /// [`token::Relay`].
    TokenRelay,
    /// [`Variant::V3_15`].
    #[serde(rename = "tree-3.15")]
    Tree315,
    /// [`Variant::V0`].
    TreeV0,
    /// [`Variant::V1`].
    TreeV1,
    /// [`Variant::V2`].
    TreeV2,
    /// [`Variant::Today`].
    TreeToday,
    /// [`OnDemand`].
    OnDemand,
}

/// An engine by its name, and its numbers.
pub type EngineKind = Choice<Kind>;

impl parameter::Kind for Kind {
    const CALLED: &'static str = "engine";

    fn all() -> &'static [EngineKind] {
        static ALL: LazyLock<Vec<EngineKind>> =
            LazyLock::new(|| parameter::read(include_str!("engines.toml")));
        &ALL
    }
}

impl EngineKind {
    /// An engine of this kind for that machine, possibly without one of its steps.
    pub(crate) fn build_with(&self, setup: &Setup, steps: impl Steps + 'static) -> Box<dyn Engine> {
        let (cpus, start) = (setup.cpus, Start::default());
        match self.kind {
            Kind::Poll => Box::new(poll::Global::with(Heap(cpus), start, steps)),
            Kind::PollPerCpu => Box::new(poll::PerCpu::with(Heap(cpus), start, steps)),
            Kind::Tick => Box::new(tick::Tick::with(Heap(cpus), start, steps)),
            Kind::Token => Box::new(token::Published::with(Heap(cpus), start, steps)),
            Kind::TokenRelay => {
                let parameters = v2::Parameters {
                    segment: self.get("segment") as usize,
                    rest_jiffies_max: self.get("rest_jiffies") as u32,
                };
                Box::new(token::Relay::with(Heap(cpus), parameters, start, steps))
            }
            Kind::Tree315 | Kind::TreeV0 | Kind::TreeV1 | Kind::TreeV2 | Kind::TreeToday => {
                self.tree(setup, steps)
            }
            Kind::OnDemand => {
                Box::new(OnDemand::with(Heap(cpus), self.on_demand_parameters(), start, steps))
            }
        }
    }

    /// Tree RCU; on a tickless machine every CPU is one of `nohz_full`.
    fn tree(&self, setup: &Setup, steps: impl Steps + 'static) -> Box<dyn Engine> {
        let options = self.tree_options(setup);
        let tree = Tree::starting_at(Sequence::after(0), options, Heap(setup.cpus), steps);
        let tickless = if setup.tickless { 0..setup.cpus } else { 0..0 };
        Box::new(tree.with_tickless(tickless))
    }

    /// Which Tree RCU it is; the newest for what is none.
    fn variant(&self, hz: u32) -> Variant {
        match self.kind {
            Kind::Tree315 => Variant::V3_15,
            Kind::TreeV0 => Variant::V0 { period: self.get("period") as u32 },
            Kind::TreeV1 => match self.get("flag_after_jiffies") as u32 {
                0 => Variant::v1(hz),
                flag_after_jiffies => Variant::V1 { flag_after_jiffies },
            },
            Kind::TreeV2 => match self.get("sched_qs_jiffies") as u32 {
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
        let or = |name, usual| match self.get(name) as u32 {
            0 => usual,
            chosen => chosen,
        };
        options.first_fqs_jiffies = or("first_fqs_jiffies", options.first_fqs_jiffies);
        options.next_fqs_jiffies = or("next_fqs_jiffies", options.next_fqs_jiffies);
        options.stall_jiffies = or("stall_jiffies", options.stall_jiffies);
        if variant == Variant::Today {
            options.sched_qs_jiffies = or("sched_qs_jiffies", options.sched_qs_jiffies);
            options.qovld = self.get("qovld");
        }
        options.blimit = u32::try_from(self.get("blimit")).unwrap_or(u32::MAX);
        options.ready_shift = self.get("ready_shift") as u32;
        options.qhimark = self.get("qhimark");
        options.qlowmark = self.get("qlowmark");
        options.leaf_fanout = self.get("leaf_fanout") as u32;
        options.fanout = self.get("fanout") as u32;
        options
    }

    fn on_demand_parameters(&self) -> on_demand::Parameters {
        on_demand::Parameters {
            gather_jiffies: self.get("gather_jiffies") as u32,
            look_jiffies: self.get("look_jiffies") as u32,
            back_off_jiffies: self.get("back_off_jiffies") as u32,
            force_after_jiffies: self.get("force_after_jiffies") as u32,
            callbacks_at_once_min: self.get("callbacks_at_once"),
            callbacks_at_once_shift: self.get("callbacks_at_once_shift") as u32,
            backlog_objects_max: self.get("backlog_objects"),
            backlog_bytes_max: self.get("backlog_bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_demand_has_its_own_defaults() {
        let engine = EngineKind::named("on-demand").unwrap();
        assert_eq!(engine.on_demand_parameters(), on_demand::Parameters::DEFAULT);
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
