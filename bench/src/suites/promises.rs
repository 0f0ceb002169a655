//! What the project has promised, as ratios between rivals of one case or as figures, and whether
//! it holds here.
//!
//! A promise is met or missed when the whole interval says so; else it is too close to call, and
//! more rounds may tell.

use super::rounds::{Case, Metric};
use super::{map, tools};
use crate::cases::replace::{LIMIT_BYTES, OBJECT_BYTES};
use crate::statistics::{Ratio, median, paired_ratio};

/// On which side of a number a ratio or a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// It is not more than this.
    AtMost(f64),
    /// It is not less than this.
    AtLeast(f64),
}

/// With what a rival's figure is compared.
#[derive(Clone, Copy, Debug)]
pub enum Against {
    /// With the figure of this one.
    Rival(&'static str),
    /// With the figure of the one among them whose median is best.
    BestOf(&'static [&'static str]),
    /// With nothing: the bound is in the metric's own unit.
    Nothing,
}

/// One promise.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// In which case.
    pub case: &'static str,
    /// Of which of its metrics.
    pub metric: &'static str,
    /// Of whose figure.
    pub rival: &'static str,
    /// With what it is compared.
    pub against: Against,
    /// What is promised of the ratio, or of the figure.
    pub bound: Bound,
    /// It is kept, too, if the rival's own figure is at most this.
    pub or_at_most: Option<f64>,
}

/// How a promise was kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Held {
    /// The whole interval keeps it.
    Met,
    /// The whole interval breaks it.
    Missed,
    /// Neither.
    TooClose,
}

/// A promise and what was measured of it.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// What was promised.
    pub promise: Promise,
    /// Of what.
    pub metric: Metric,
    /// The rival that was compared with. With none, the ratio is the figure itself.
    pub base: Option<&'static str>,
    /// What was measured.
    pub ratio: Ratio,
    /// Whether the promise was kept.
    pub held: Held,
}

/// What is written often: the sequence lock beside others.
const fn sequence(case: &'static str, metric: &'static str) -> Promise {
    promise(case, metric, "quiescence-seqlock", SNAPSHOTS, AtMost(1.0))
}

const fn promise(
    case: &'static str,
    metric: &'static str,
    rival: &'static str,
    against: Against,
    bound: Bound,
) -> Promise {
    Promise { case, metric, rival, against, bound, or_at_most: None }
}

/// Of the library's own figure in a case.
const fn ours(case: &'static str, metric: &'static str, against: Against, bound: Bound) -> Promise {
    promise(case, metric, "quiescence", against, bound)
}

/// liburcu's default flavour, whose readers are inlined C.
const MEMB: Against = Against::Rival("liburcu-memb");
const OURS: Against = Against::Rival("quiescence");

/// Debian's libraries, under the same program.
const LIBURCU: Against = Against::Rival("liburcu");

/// The pair of a reader that keeps to its thread.
const THREAD_READER: Against = Against::Rival("quiescence-thread");

/// Cells whose guards borrow a reference, as ours.
const ARC_SWAP: Against = Against::Rival("arc-swap");
const HAZARC: Against = Against::Rival("hazarc");

/// A waiter that never sleeps.
const BUSY: Against = Against::Rival("quiescence-busy");

/// Those whose updaters are never blocked, and liburcu's two ways.
const UPDATERS: Against = Against::BestOf(&[
    "seize",
    "crossbeam-epoch",
    "arc-swap",
    "sdd",
    "liburcu-call",
    "liburcu-defer",
]);

/// All that defer: a lock is no rival of theirs, but the reason for them.
const DEFERRERS: Against = Against::BestOf(&[
    "seize",
    "crossbeam-epoch",
    "arc-swap",
    "sdd",
    "haphazard",
    "liburcu-call",
    "liburcu-defer",
]);

const TABLES_WITH_LOCKS: Against =
    Against::BestOf(&["std-rwlock", "parking_lot-rwlock", "scc-hashindex"]);

const TABLES: Against = Against::BestOf(&[
    "std-rwlock",
    "parking_lot-rwlock",
    "scc-hashindex",
    "papaya",
    "dashmap",
    "crossbeam-epoch",
    "seize",
    "sdd",
    "haphazard",
    "liburcu-memb",
    "liburcu-qsbr",
]);

/// Those that read a few words whole.
const SNAPSHOTS: Against =
    Against::BestOf(&["arc-swap", "seqlock", "crossbeam-cell", "left-right"]);

/// What may wait at the limit: one object a thread more.
const WAITING_MAX: f64 = (LIMIT_BYTES / OBJECT_BYTES as u64 + 1) as f64;

use Bound::{AtLeast, AtMost};

/// The targets that the library was built for.
static PROMISES: &[Promise] = &[
    promise("read/1-thread", "read", "quiescence", MEMB, AtMost(1.05)),
    promise("read/1-thread", "read", "quiescence-reader", MEMB, AtMost(1.05)),
    promise("read/1-thread", "read", "quiescence-qsbr", Against::Rival("plain-load"), AtMost(1.1)),
    promise("read/1-thread", "read", "crossbeam-epoch", OURS, AtLeast(3.0)),
    promise("read/1-thread", "read", "seize", OURS, AtLeast(3.0)),
    promise("nested/1-thread", "read", "quiescence", MEMB, AtMost(1.2)),
    promise("nested/1-thread", "read", "crossbeam-epoch", OURS, AtLeast(2.0)),
    promise("gp/alone", "p50", "quiescence", MEMB, AtMost(0.3)),
    promise("gp/busy-reader", "p50", "quiescence", MEMB, AtMost(0.65)),
    promise(
        "gp/busy-reader",
        "p50",
        "quiescence-fencing",
        Against::Rival("crossbeam-epoch"),
        AtMost(1.0),
    ),
    promise("gp/200-idle", "p50", "quiescence", MEMB, AtMost(0.8)),
    promise("gp/10000-idle", "p50", "quiescence", MEMB, AtMost(0.5)),
    promise("gp/oversubscribed", "reads per CPU s", "quiescence", MEMB, AtLeast(1.0)),
    ours("update/no-reader", "updates", UPDATERS, AtLeast(1.0)),
    ours("update/no-reader", "CPU", DEFERRERS, AtMost(1.0)),
    ours("update/no-reader", "p99.9", DEFERRERS, AtMost(0.5)),
    ours("update/1-reader", "updates", UPDATERS, AtLeast(1.0)),
    ours("update/1-reader", "CPU", DEFERRERS, AtMost(1.0)),
    ours("update/1-reader", "p99.9", DEFERRERS, AtMost(0.5)),
    promise("update/no-reader", "updates", "quiescence-qsbr", OURS, AtLeast(0.9)),
    ours("tail/1-updater", "p99.9", Against::Rival("liburcu-call"), AtMost(1.0)),
    ours("tail/1-updater", "p99.9", Against::Rival("seize"), AtMost(0.2)),
    ours("tail/1-updater", "p99.9", Against::Rival("crossbeam-epoch"), AtMost(0.2)),
    ours("hash/99", "operations", TABLES, AtLeast(1.0)),
    ours("hash/90", "operations", TABLES_WITH_LOCKS, AtLeast(1.0)),
    ours("hash/50", "operations", TABLES_WITH_LOCKS, AtLeast(1.0)),
    Promise {
        or_at_most: Some(25.0),
        ..ours("call/enqueue", "call", Against::Rival("liburcu-call"), AtMost(0.125))
    },
    ours("memory/waiting", "memory", Against::Nothing, AtMost(16.0)),
    ours("stall/1-reader", "unreclaimed peak", Against::Nothing, AtMost(WAITING_MAX)),
    ours("stall/1-reader", "reads kept", Against::Nothing, AtLeast(95.0)),
    ours("barrier/1-callback", "barrier", Against::Rival("liburcu-call"), AtMost(0.02)),
    ours("pair/1-thread", "pair", THREAD_READER, AtMost(2.5)),
    ours("pair/2-threads", "pair", THREAD_READER, AtMost(2.5)),
    ours("boot/1-reader", "update", BUSY, AtMost(1.1)),
    ours("boot/2-readers", "update", BUSY, AtMost(1.1)),
    ours("blocked/1-reader", "CPU", Against::Nothing, AtMost(1.0)),
    ours("blocked/1-reader", "stretch", Against::Nothing, AtMost(10e6)),
    ours("snapshot/1-thread", "read", Against::Rival("plain-load"), AtMost(4.0)),
    ours("snapshot/2-threads", "read", Against::Rival("plain-load"), AtMost(4.0)),
    ours("snapshot/1-thread", "read", SNAPSHOTS, AtMost(1.0)),
    ours("snapshot/2-threads", "read", SNAPSHOTS, AtMost(1.0)),
    ours("snapshot/1-writer", "read", SNAPSHOTS, AtMost(1.0)),
    sequence("snapshot/1-thread", "read"),
    sequence("snapshot/2-threads", "read"),
    sequence("snapshot/1-writer", "read"),
    sequence("snapshot/write", "write"),
    sequence("snapshot/write-1-reader", "write"),
    ours("load/1-thread", "load", ARC_SWAP, AtMost(0.3)),
    ours("load/2-threads", "load", ARC_SWAP, AtMost(0.3)),
    ours("load/1-thread", "load", HAZARC, AtMost(0.4)),
    ours("load/2-threads", "load", HAZARC, AtMost(0.4)),
    ours("full/1-thread", "load", Against::Rival("arc-clone"), AtMost(1.05)),
    ours("full/2-threads", "load", Against::Rival("arc-clone"), AtMost(1.05)),
    ours("protect/1-thread", "pair", Against::Rival("haphazard"), AtMost(0.5)),
    ours("protect/2-threads", "pair", Against::Rival("haphazard"), AtMost(0.5)),
    ours("store/alone", "store", ARC_SWAP, AtMost(0.5)),
    ours("store/1-reader", "store", ARC_SWAP, AtMost(0.5)),
    ours("store/200-threads", "store", ARC_SWAP, AtMost(0.5)),
    ours("garbage/last-store", "freed after", Against::Nothing, AtMost(10e6)),
    promise(
        "grace/6-readers",
        "p50",
        "liburcu-memb",
        Against::Rival("quiescence-snapshot"),
        AtLeast(1000.0),
    ),
    ours("counter/1-thread", "add", Against::Rival("atomic-own"), AtMost(0.5)),
    ours("counter/2-threads", "add", Against::Rival("atomic-own"), AtMost(0.5)),
    ours("lock/1-thread", "pair", THREAD_READER, AtMost(1.5)),
    ours("lock/2-threads", "pair", THREAD_READER, AtMost(1.5)),
    ours("inlined/memb", "pair", LIBURCU, AtMost(1.05)),
    ours("inlined/mb", "pair", LIBURCU, AtMost(1.05)),
    ours("inlined/qsbr", "pair", LIBURCU, AtMost(1.05)),
    ours("inlined/bp", "pair", LIBURCU, AtMost(1.05)),
    ours("exported/memb", "pair", LIBURCU, AtMost(0.8)),
    ours("synchronize/alone", "p50", LIBURCU, AtMost(0.5)),
    ours("synchronize/busy-reader", "p50", LIBURCU, AtMost(0.7)),
    ours("synchronize/1000-idle", "p50", LIBURCU, AtMost(0.5)),
    ours("synchronize/bp-100us", "p50", LIBURCU, AtMost(0.05)),
    ours("synchronize/qsbr-alone", "p50", LIBURCU, AtMost(0.6)),
    ours("synchronize/qsbr-reader", "p50", LIBURCU, AtMost(1.0)),
    ours("synchronize/bp-1000-idle", "p50", LIBURCU, AtMost(0.5)),
    ours("callbacks/memb", "call", LIBURCU, AtMost(0.4)),
    ours("callbacks/memb", "backlog", LIBURCU, AtMost(1.0)),
    ours("callbacks/memb", "memory", LIBURCU, AtMost(1.0)),
    ours("callbacks/memb", "barrier", LIBURCU, AtMost(1.0)),
    ours("callbacks/qsbr", "call", LIBURCU, AtMost(0.4)),
    ours("callbacks/qsbr", "backlog", LIBURCU, AtMost(1.0)),
    ours("callbacks/qsbr", "memory", LIBURCU, AtMost(1.0)),
    ours("callbacks/bp", "call", LIBURCU, AtMost(0.4)),
    ours("callbacks/bp", "backlog", LIBURCU, AtMost(1.0)),
    ours("callbacks/bp", "memory", LIBURCU, AtMost(1.0)),
    ours("defer/memb", "call", LIBURCU, AtMost(0.8)),
    ours("defer/memb", "CPU", LIBURCU, AtMost(0.8)),
    ours("defer/qsbr", "call", LIBURCU, AtMost(0.8)),
    ours("defer/bp", "call", LIBURCU, AtMost(0.8)),
    ours("flood/producers", "reads", LIBURCU, AtLeast(0.95)),
    ours("flood/few-producers", "reads", LIBURCU, AtLeast(0.95)),
    ours("flood/few-producers", "least of most", LIBURCU, AtLeast(0.9)),
    ours("flood/few-producers", "at the end", LIBURCU, AtMost(0.3)),
    ours("callbacks/barrier", "call", LIBURCU, AtMost(0.02)),
    ours("table/lookup", "operations", LIBURCU, AtLeast(1.0)),
    ours("table/insert", "operations", LIBURCU, AtLeast(3.0)),
];

/// Judges the promises about what was measured; of the others it says nothing.
pub fn judge(cases: &[Case]) -> Vec<Verdict> {
    let verdict = |promise: &Promise| {
        let case = cases.iter().find(|case| case.id == promise.case)?;
        let number = case.metrics.iter().position(|metric| metric.name == promise.metric)?;
        let own = &case.rival(promise.rival)?.values[number];
        let figure = paired_ratio(own, &vec![1.0; own.len()]);
        let base = promise.base(case, number);
        let (ratio, held) = match (base, promise.against) {
            (Some(base), _) => {
                let ratio = case.ratio(promise.rival, base, number)?;
                (ratio, promise.bound.held(&ratio))
            }
            (None, Against::Nothing) => (figure, promise.bound.held(&figure)),
            // No rival to compare with: the other half of the promise has to do.
            (None, _) => (figure, AtMost(promise.or_at_most?).held(&figure)),
        };
        let held = match promise.or_at_most.map(|most| AtMost(most).held(&figure)) {
            Some(Held::Met) => Held::Met,
            Some(Held::TooClose) if held == Held::Missed => Held::TooClose,
            _ => held,
        };
        Some(Verdict { promise: *promise, metric: case.metrics[number], base, ratio, held })
    };
    all().filter_map(verdict).collect()
}

/// All promises.
fn all() -> impl Iterator<Item = &'static Promise> {
    PROMISES.iter().chain(map::PROMISES).chain(tools::PROMISES)
}

impl Promise {
    /// The rival to compare with, if it was measured.
    fn base(&self, case: &Case, metric: usize) -> Option<&'static str> {
        let middle = |name: &str| Some(median(&mut case.rival(name)?.values[metric].clone()));
        match self.against {
            Against::Nothing => None,
            Against::Rival(name) => middle(name).map(|_| name),
            Against::BestOf(names) => {
                let known = names.iter().filter_map(|name| Some((middle(name)?, *name)));
                let best = match self.bound {
                    AtMost(_) => known.min_by(|a, b| a.0.total_cmp(&b.0)),
                    AtLeast(_) => known.max_by(|a, b| a.0.total_cmp(&b.0)),
                };
                best.map(|(_, name)| name)
            }
        }
    }
}

impl Bound {
    fn held(self, ratio: &Ratio) -> Held {
        let (met, missed) = match self {
            Bound::AtMost(bound) => (ratio.high <= bound, ratio.low > bound),
            Bound::AtLeast(bound) => (ratio.low >= bound, ratio.high < bound),
        };
        match (met, missed) {
            (true, _) => Held::Met,
            (_, true) => Held::Missed,
            _ => Held::TooClose,
        }
    }
}

impl Verdict {
    /// Whether the promise was broken, and no doubt of it.
    pub fn is_missed(&self) -> bool {
        self.held == Held::Missed
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::Unit;
    use super::super::{cells, compat, gp, percpu, read, srcu, tools, update};
    use super::*;
    use crate::rivals::left_out;

    /// A case in which each rival has the same figure in all of six rounds.
    fn case(id: &'static str, metric: &'static Metric, of: &[(&'static str, f64)]) -> Case {
        let names = of.iter().map(|(name, _)| (*name, false));
        let mut case = Case::new(id, id, std::slice::from_ref(metric), names);
        for (rival, (_, figure)) in case.rivals.iter_mut().zip(of) {
            rival.values = vec![vec![*figure; 6]];
        }
        case
    }

    const READ: Metric = Metric { name: "read", unit: Unit::Nanoseconds };
    const CALL: Metric = Metric { name: "call", unit: Unit::Nanoseconds };
    const OPERATIONS: Metric = Metric { name: "operations", unit: Unit::PerSecond };
    const MEMORY: Metric = Metric { name: "memory", unit: Unit::Bytes };

    #[test]
    fn the_whole_interval_has_to_say_so() {
        let ratio = |low, high| Ratio { median: (low + high) / 2.0, low, high };
        assert_eq!(Bound::AtMost(1.0).held(&ratio(0.8, 1.0)), Held::Met);
        assert_eq!(Bound::AtMost(1.0).held(&ratio(0.8, 1.1)), Held::TooClose);
        assert_eq!(Bound::AtMost(1.0).held(&ratio(1.01, 1.1)), Held::Missed);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(3.0, 4.0)), Held::Met);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(2.9, 4.0)), Held::TooClose);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(2.0, 2.9)), Held::Missed);
    }

    #[test]
    fn only_what_was_measured_is_judged() {
        let rivals = [("quiescence", 1.0), ("seize", 2.0)];
        let verdicts = judge(&[case("read/1-thread", &READ, &rivals)]);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].promise.rival, "seize");
        assert!(verdicts[0].is_missed(), "twice is not three times");
    }

    #[test]
    fn the_best_of_those_that_were_measured_is_the_one_to_beat() {
        let judged = |ours| {
            let rivals = [("quiescence", ours), ("std-rwlock", 3.0), ("scc-hashindex", 5.0)];
            let verdicts = judge(&[case("hash/90", &OPERATIONS, &rivals)]);
            assert_eq!((verdicts.len(), verdicts[0].base), (1, Some("scc-hashindex")));
            verdicts[0].held
        };
        assert_eq!(judged(4.0), Held::Missed);
        assert_eq!(judged(5.0), Held::Met);
    }

    #[test]
    fn a_figure_is_judged_by_itself() {
        let judged = |bytes| judge(&[case("memory/waiting", &MEMORY, &[("quiescence", bytes)])]);
        assert_eq!((judged(16.0)[0].held, judged(16.0)[0].base), (Held::Met, None));
        assert!(judged(16.5)[0].is_missed());
    }

    #[test]
    fn either_half_of_a_promise_will_do() {
        let judged = |ours, liburcu| {
            let rivals = [("quiescence", ours), ("liburcu-call", liburcu)];
            judge(&[case("call/enqueue", &CALL, &rivals)])[0].held
        };
        assert_eq!(judged(20.0, 40.0), Held::Met, "25 ns");
        assert_eq!(judged(40.0, 400.0), Held::Met, "an eighth");
        assert_eq!(judged(40.0, 80.0), Held::Missed);
        let alone = |ours| judge(&[case("call/enqueue", &CALL, &[("quiescence", ours)])])[0].held;
        assert_eq!((alone(25.0), alone(26.0)), (Held::Met, Held::Missed));
    }

    #[test]
    fn promises_name_metrics_and_rivals_that_can_be_measured() {
        for Promise { case, metric, rival, against, .. } in all() {
            let known =
                [read::known, gp::known, update::known, map::known, compat::known, tools::known]
                    .into_iter();
            let (metrics, known) = known
                .map(|known| known(case))
                .chain(
                    [&srcu::SCENES, &percpu::SCENES, &cells::SCENES]
                        .map(|scenes| scenes.known(case)),
                )
                .find_map(|known| known)
                .unwrap_or_else(|| panic!("no suite measures {case}"));
            assert!(metrics.iter().any(|known| known.name == *metric), "{case}: {metric}");
            let others: &[&str] = match against {
                Against::Rival(base) => &[*base],
                Against::BestOf(names) => names,
                Against::Nothing => &[],
            };
            for name in others.iter().chain([rival]) {
                let is_left_out = left_out(name).is_some();
                assert!(is_left_out || known.contains(name), "{case}: {name}");
            }
        }
    }
}
