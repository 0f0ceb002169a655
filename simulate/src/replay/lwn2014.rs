//! Tree RCU and `cond_resched()`, 2014: `lwn2014`.
//!
//! On a large machine each process opens and closes its own file without end; each close frees a
//! `struct file` by a callback. Linux 3.16-rc lost throughput, because `cond_resched()` had become
//! a quiescent state (v0): grace periods were shorter, batches of callbacks smaller, and, as the
//! publication has it, the slab allocator more contended. What was merged (v2) stayed within 3 % of
//! 3.15 if it waited long before it interrupted CPUs, and lost about 10 % by default.
//!
//! The model is the machine of the reporter, 160 CPUs on eight sockets, and a slab allocator whose
//! pages, locks and cache lines are charged to the CPUs that run the loop ([`crate::slab`],
//! [`crate::memory`]): all CPUs free at once when a grace period has ended, and wait for each other
//! at the locks. One number is fitted, [`ZONE_LINE_NS`], on the share of samples that the same
//! reporter had found in this test in November 2013 in the lock function that disables interrupts
//! (17.65 %). The share of the other lock function (13.80 %) is predicted, and comes out to a
//! fifth. Our estimates are [`OPERATION_NS`], [`KERNEL_PERCENT`] and [`COND_RESCHED_NS`].
//!
//! **The losses do not come out, and their sign is wrong.** The spinning of 2013 is found where
//! large batches give whole pages back and take them again: at the zones' locks. That is less, not
//! more, if grace periods are shorter: v0 recycles its pages within a CPU's own lists and all but
//! stops to spin, and v2 gains a little. A loss of 10 % with v2 would need the *nodes'* locks to be
//! the slow ones, which are visited more often if batches are smaller: a page would have to take
//! [`SLOW_LIST_PAGE_NS`] under them, more than a thousand times what its cache lines take. The row
//! says what that gives; nearly all spinning would then be in the other lock function. So what
//! 3.16-rc lost was not lost in the allocator as it is modelled here, or the two profiles are of
//! different things.
//!
//! Our estimates do not decide that. With the number fitted anew, v2 gains one per cent with
//! operations of 1.5 us and six with operations of 10 us. With 80 % of the time in the kernel the
//! grace periods of v2 are those of 3.15, and v2 loses one per cent: noise.

use std::thread;

use kernel::engine::tree::{Options, Tree, Variant};

use super::published::Publication;
use super::{Fitted, Row, Variation, fitted};
use crate::Heap;
use crate::events::Time;
use crate::memory::SlabUse;
use crate::report::Report;
use crate::run_engine;
use crate::setup::{MILLISECOND, SECOND, Setup};
use crate::slab::Shape;
use crate::workload::Workload;

/// CPUs: eight sockets of ten cores of two threads, as its reporter had.
pub const CPUS: usize = 160;
/// CPUs of a socket, and of its memory node.
pub const CPUS_PER_NODE: usize = 20;
/// Ticks a second.
pub const HZ: u32 = 1_000;
/// To open and close a file. Our estimate, for a CPU of then.
pub const OPERATION_NS: u64 = 3_000;
/// Share of that in the kernel: what the tick finds. Decides how long a grace period of 3.15 is.
pub const KERNEL_PERCENT: u64 = 95;
/// From one `cond_resched()` to the next: wherever the kernel might sleep. Decides nothing as long
/// as 256 of them take less than a tick, but that 256,000 take less than a grace period of 3.15.
pub const COND_RESCHED_NS: u64 = 500;

/// A cache line that the page allocator touches under a zone's lock; fitted on 17.65 % of samples
/// in the lock function that disables interrupts. A line from another core costs a tenth of that:
/// what else is done under the lock, and what those who wait do to the holder's lines, is in it.
pub const ZONE_LINE_NS: u64 = 850;
/// What a page would have to take under a node's lock, were about 10 % to be lost with v2: used
/// only to say so.
pub const SLOW_LIST_PAGE_NS: u64 = 130_000;

/// What is a loss, in percent: less is noise.
const LOSS_PERCENT: f64 = 1.0;

/// Calls of `cond_resched()` to a quiescent state, where they are raised from 256.
const PATIENT_PERIOD: u64 = 256 * 1_000;
const PATIENT: Variant = Variant::V0 { period: PATIENT_PERIOD as u32 };

/// What was fitted, and on which figure.
pub const FITTED: &[Fitted] = &[fitted(
    "lwn2014",
    "850 ns for a cache line under a zone's lock",
    "irqsave spinning, % of samples (Hansen, November 2013)",
)];

/// How long an engine runs, warm-up included; the second half is counted. Those whose grace periods
/// are short need less.
const RUN: Time = 700 * MILLISECOND;
const SHORT_RUN: Time = 250 * MILLISECOND;
/// Files of the process that exits, and how long it takes to close one.
const FILES: u64 = 50_000;
const FILE_NS: u64 = 10_000;

/// What the model gives for an engine.
#[derive(Clone, Debug)]
struct Outcome {
    report: Report,
    slab: SlabUse,
}

impl Outcome {
    /// CPU time of an operation, everything included, in nanoseconds: of all CPUs, which are
    /// never idle.
    ///
    /// Callbacks come in bursts, and waiting for locks with them. So their time is divided by the
    /// callbacks, and all else by the operations: how many bursts happen to fall into the time that
    /// is counted decides nothing.
    fn operation_ns(&self) -> f64 {
        let all_ns = self.report.time.total_ns() as f64;
        let burst_ns = (self.report.time.callback_ns + self.slab.irqsave_ns) as f64;
        (all_ns - burst_ns) / self.report.operations.max(1) as f64 + self.for_each(burst_ns)
    }

    /// So much divided by the callbacks.
    fn for_each(&self, ns: f64) -> f64 {
        ns / self.report.callbacks.invoked.max(1) as f64
    }

    /// The share of spinning of all time, in percent.
    fn percent(&self, spinning_ns: u64) -> f64 {
        100.0 * self.for_each(spinning_ns as f64) / self.operation_ns()
    }

    fn irqsave_percent(&self) -> f64 {
        self.percent(self.slab.irqsave_ns)
    }

    fn plain_percent(&self) -> f64 {
        self.percent(self.slab.plain_lock_ns)
    }

    /// The mean length of a grace period, in milliseconds.
    fn grace_period_ms(&self) -> f64 {
        self.report.grace_period_ns.mean as f64 / MILLISECOND as f64
    }

    /// Visits to nodes' locks for a million objects.
    fn visits_ppm(&self) -> u64 {
        self.slab.node_lock_visits * 1_000_000 / self.slab.frees.max(1)
    }

    /// Pages from and to the page allocator, for a million objects.
    fn pages_ppm(&self) -> u64 {
        self.slab.zone_lock_visits * 1_000_000 / self.slab.frees.max(1)
    }
}

/// What variations change.
#[derive(Clone, Copy)]
struct Model {
    operation_ns: u64,
    kernel_percent: u64,
    cond_resched_ns: u64,
}

const MODEL: Model = Model {
    operation_ns: OPERATION_NS,
    kernel_percent: KERNEL_PERCENT,
    cond_resched_ns: COND_RESCHED_NS,
};

/// What is estimated, and what the publication names.
pub fn variations() -> Vec<Variation> {
    let of = |what, model: Model| Variation::of(what, move || model.rows());
    vec![
        of("operations of 1.5 us, not 3", Model { operation_ns: 1_500, ..MODEL }),
        of("operations of 10 us", Model { operation_ns: 10_000, ..MODEL }),
        of("80 % of them in the kernel, not 95", Model { kernel_percent: 80, ..MODEL }),
        of("98 % in the kernel", Model { kernel_percent: 98, ..MODEL }),
        of("cond_resched() each 250 ns, not 500", Model { cond_resched_ns: 250, ..MODEL }),
        of("cond_resched() each 1,000 ns", Model { cond_resched_ns: 1_000, ..MODEL }),
        of(
            "without: cond_resched() where files are opened and closed",
            Model { cond_resched_ns: 0, ..MODEL },
        )
        .missing("3.16-rc has more grace periods"),
    ]
}

impl Model {
    /// The loop under a variant.
    fn open_close(self, variant: Variant) -> Outcome {
        self.simulate(variant, RUN, &[("slab_zone_line_ns", ZONE_LINE_NS)])
    }

    /// The loop under a variant, for so long, with these numbers of the allocator.
    fn simulate(self, variant: Variant, run: Time, numbers: &[(&str, u64)]) -> Outcome {
        let mut workload = named("open-close");
        set(&mut workload, "operation_ns", self.operation_ns);
        set(&mut workload, "kernel_percent", self.kernel_percent);
        set(&mut workload, "cond_resched_ns", self.cond_resched_ns);
        let shape = Shape::filp(CPUS as u32);
        set(&mut workload, "slab_objects_per_page", shape.objects_per_page.into());
        set(&mut workload, "slab_cpus_per_node", CPUS_PER_NODE as u64);
        numbers.iter().for_each(|(name, value)| set(&mut workload, name, *value));
        let setup = Setup {
            cpus: CPUS,
            hz: HZ,
            tickless: false,
            warm_up: run / 2,
            duration: run / 2,
            ..Setup::default()
        };
        let tree = Tree::new(Options::new(variant, HZ, CPUS), Heap(CPUS));
        let report = possible(run_engine(&setup, Box::new(tree), "tree", &workload));
        let slab = report.slab.unwrap_or_default();
        Outcome { report, slab }
    }

    /// One CPU, tickless, exits with many files open; seven others run a file server.
    fn exit_files(self, variant: Variant) -> Report {
        const CPUS: usize = 8;
        let mut workload = named("exit-files");
        set(&mut workload, "exits_on_every_cpus", CPUS as u64);
        set(&mut workload, "files", FILES);
        set(&mut workload, "file_ns", FILE_NS);
        set(&mut workload, "pause_us", 100_000);
        set(&mut workload, "calls_per_1000_bursts", 1_000);
        let setup = Setup { cpus: CPUS, hz: HZ, duration: 2 * SECOND, ..Setup::default() };
        let tree = Tree::new(Options::new(variant, HZ, CPUS), Heap(CPUS)).with_tickless([0]);
        possible(run_engine(&setup, Box::new(tree), "tree", &workload))
    }

    fn rows(self) -> Vec<Row> {
        let before = self.open_close(Variant::V3_15);
        let mut published = Publication::read(include_str!("lwn2014.toml"));
        fill_spinning(&mut published, &before);
        thread::scope(|scope| {
            let losers = scope.spawn(|| self.losers());
            self.fill_story(&mut published, &before);
            self.fill_exits(&mut published);
            let losers = losers.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            fill_losses(&mut published, &before, &losers);
        });
        published.rows()
    }

    /// v2 if it waits long, v2 as it was merged; 3.15 and v2 with slow lists.
    fn losers(self) -> [Outcome; 4] {
        let patient = self.open_close(Variant::V2 { sched_qs_jiffies: u32::MAX });
        let slow = |variant| self.simulate(variant, RUN, &[("slab_page_ns", SLOW_LIST_PAGE_NS)]);
        [patient, self.open_close(Variant::v2(HZ)), slow(Variant::V3_15), slow(Variant::v2(HZ))]
    }

    fn fill_story(self, published: &mut Publication, before: &Outcome) {
        let zone = [("slab_zone_line_ns", ZONE_LINE_NS)];
        // Without cond_resched() its grace periods are those of 3.15.
        let run = if self.cond_resched_ns == 0 { RUN } else { SHORT_RUN };
        let v0 = self.simulate(Variant::v0(), run, &zone);
        let patient = self.open_close(PATIENT);
        let flagged = self.open_close(Variant::v1(HZ));
        let [old_ms, v0_ms, flagged_ms, patient_ms] =
            [before, &v0, &flagged, &patient].map(Outcome::grace_period_ms);
        let found = [format!("{v0_ms:.1}"), format!("{flagged_ms:.0}"), format!("{old_ms:.0}")];
        published.statement("more", &found, 5.0 * v0_ms < flagged_ms && flagged_ms <= old_ms);
        let visits = [&v0, before].map(Outcome::visits_ppm);
        published.statement(
            "smaller",
            &visits.map(|ppm| ppm.to_string()),
            visits[0] > 2 * visits[1],
        );
        let lost = loss(before, &v0);
        let [spinning, spinning_before] =
            [&v0, before].map(|outcome| outcome.irqsave_percent() + outcome.plain_percent());
        let found = [lost, spinning, spinning_before].map(|percent| format!("{percent:.1}"));
        let pages = [before, &v0].map(|outcome| outcome.pages_ppm().to_string());
        published.statement("loses", &found, lost > LOSS_PERCENT).why("loses", &pages);
        let lost = loss(before, &patient);
        let found = [format!("{patient_ms:.0}"), format!("{old_ms:.0}"), format!("{lost:.1}")];
        // Nothing is restored where nothing was lost: v0's grace periods have to differ.
        let is_restored = !Row::in_band(v0_ms / old_ms)
            && Row::in_band(patient_ms / old_ms)
            && lost.abs() < LOSS_PERCENT;
        let between_ms = (PATIENT_PERIOD * self.cond_resched_ns) / MILLISECOND;
        published
            .statement("raising", &found, is_restored)
            .why("raising", &[between_ms.to_string()]);
    }

    fn fill_exits(self, published: &mut Publication) {
        let variants = [Variant::V3_15, Variant::v0(), PATIENT, Variant::v2(HZ), Variant::Today];
        let runs = variants.map(|variant| self.exit_files(variant));
        let held = runs.each_ref().map(|run| run.grace_period_ns.max / MILLISECOND);
        let [old, v0, patient, v2, today] = held;
        let is_held = old > 2 * v0.max(v2).max(today) && patient > 2 * v0;
        published.statement("exit", &held.map(|ms| ms.to_string()), is_held);
        let piled = runs.each_ref().map(|run| run.callbacks.waiting_peak);
        let [old, v0, _, _, today] = piled;
        published.statement("pile", &piled.map(|most| most.to_string()), old > v0 && old > today);
    }
}

/// The rows of the publication. Takes about a quarter of a minute, for the most part on two
/// threads.
pub fn rows() -> Vec<Row> {
    MODEL.rows()
}

fn named(name: &str) -> Workload {
    possible(Workload::named(name))
}

fn set(workload: &mut Workload, name: &str, value: u64) {
    possible(workload.set(name, value));
}

/// What is written in this file is possible; a test runs all of it.
fn possible<T>(result: Result<T, crate::Impossible>) -> T {
    result.unwrap_or_else(|impossible| panic!("{impossible}"))
}

fn fill_spinning(published: &mut Publication, before: &Outcome) {
    let held_ns = before.slab.zone_lock_held_ns / before.slab.zone_lock_visits.max(1);
    published.number("irqsave", before.irqsave_percent()).why("irqsave", &[held_ns.to_string()]);
    published.number("plain", before.plain_percent());
}

/// What is lost against 3.15, in percent of its throughput.
fn loss(before: &Outcome, after: &Outcome) -> f64 {
    let percent = 100.0 * (1.0 - before.operation_ns() / after.operation_ns());
    // To a hundredth, and without the sign of a loss that is none.
    (percent * 100.0).round() / 100.0 + 0.0
}

fn fill_losses(published: &mut Publication, before: &Outcome, losers: &[Outcome; 4]) {
    let [patient, merged, slow_before, slow_merged] = losers;
    let patient_loss = loss(before, patient);
    let found = [format!("{patient_loss:.2}")];
    published.statement("v2_large_sched_qs_loss_percent", &found, patient_loss.abs() <= 3.0);
    let why = [
        format!("{:.0}", merged.grace_period_ms()),
        format!("{:.0}", before.grace_period_ms()),
        merged.visits_ppm().to_string(),
        before.visits_ppm().to_string(),
        (SLOW_LIST_PAGE_NS / 1_000).to_string(),
        format!("{:.1}", loss(slow_before, slow_merged)),
        format!("{:.1}", slow_before.irqsave_percent()),
        format!("{:.1}", slow_before.plain_percent()),
    ];
    const FIGURE: &str = "v2_default_loss_percent";
    published.number(FIGURE, loss(before, merged)).why(FIGURE, &why);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_says_how_long_the_files_take() {
        let ms = FILES * FILE_NS / MILLISECOND;
        let mut published = Publication::read(include_str!("lwn2014.toml"));
        let figure = &published.row("exit").figure;
        assert!(figure.contains(&format!("of {FILES} files ({ms} ms)")), "{figure}");
    }
}
