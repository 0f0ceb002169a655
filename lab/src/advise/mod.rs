//! `rcu advise`: runs a workload on every design, ranks them, and says where the answer flips.
//!
//! Reading order: [`race`] runs designs against each other, [`rank`] compares them, [`sweep`]
//! changes one thing at a time, [`verdict`] puts it into words; [`report`] shows it on a terminal,
//! [`document`] as JSON, [`page`] with [`plot`] as HTML.

mod document;
mod page;
mod plot;
mod race;
mod rank;
mod report;
mod sweep;
mod verdict;

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rivals::Plan;

use crate::draw;
use crate::exit::{Exit, Failure};
use crate::keys::{self, Keys};
use crate::machine::Machine;
use crate::output::{self, Output, Progress};
use crate::workload::{Defaults, Flags, Kind, Workload};
use crate::{costs, units};
use race::{Contender, Series, Track};
use report::{Noise, Report};
use sweep::{Over, Point, Sweep};

/// The arguments of `rcu advise`, as typed.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AdviseArgs {
    /// Be done within 15 seconds: fewer keys, shorter rounds, coarser verdicts
    #[arg(long)]
    quick: bool,
    /// Draw the operations and the order of the rounds from this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Leave a part out; may be given twice
    #[arg(long, value_name = "PART", value_enum)]
    skip: Vec<Part>,
    /// Recommend nothing, and exit 3, when half of a design's rounds lie further apart than this, or
    /// other programs had more than this of the CPU time
    #[arg(long, value_name = "PERCENT", default_value = "30")]
    noise_limit: NoiseLimit,
    /// Also write the report as one self-contained page to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
    #[command(flatten)]
    workload: Flags,
}

/// What can be left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Part {
    /// The table of what synchronisation costs
    Costs,
    /// The search for where the answer flips
    Sweep,
}

/// A run of `rcu advise` with everything decided.
struct Run<'a> {
    args: &'a AdviseArgs,
    machine: &'a Machine,
    workload: Workload,
    keys: Keys,
}

/// Runs `rcu advise`.
pub(crate) fn run(args: &AdviseArgs, output: &mut Output) -> Result<Exit, Failure> {
    let machine = Machine::detect();
    let defaults = Defaults {
        cpus: machine.cpus.len() as u32,
        quick: args.quick,
    };
    let workload = Workload::resolve(&args.workload, defaults)?;
    let mut page = match &args.html {
        None => None,
        Some(path) => Some((output::open_for_results(path)?, path)),
    };
    if page.is_some() {
        output.expect_other_file();
    }
    machine.print(output)?;
    let keys = keys::read(&workload.keys, workload.keys_max)?;
    check_memory(&machine, &workload, &keys)?;
    let run = Run {
        args,
        machine: &machine,
        workload,
        keys,
    };
    let report = run.measure(output)?;
    report.print(output)?;
    output.json(&document::document(&report))?;
    if let Some((file, path)) = &mut page {
        write_page(file, &report).map_err(|error| Failure::file("write", path, error))?;
        output.line(format!("\nThe page is in {}.", path.display()))?;
    }
    Ok(verdict_of(&report))
}

fn write_page(file: &mut File, report: &Report) -> std::io::Result<()> {
    output::write_results(file, page::page(report).as_bytes())
}

fn verdict_of(report: &Report) -> Exit {
    if report.checksum_errors() > 0 {
        Exit::Violation
    } else if report.interrupted {
        Exit::Interrupted
    } else if report.noise.is_too_much() {
        Exit::Noisy
    } else {
        Exit::Ok
    }
}

/// All designs are filled at once, since their rounds are interleaved. Says beforehand when that
/// does not fit, and what would.
fn check_memory(machine: &Machine, workload: &Workload, keys: &Keys) -> Result<(), Failure> {
    /// What a design keeps for a key besides its value, generously: buckets, counts, pointers.
    const BYTES_BESIDE_VALUE: u64 = 256;
    let designs = rivals::designs(workload.kind.into()).len() as u64;
    let values = match workload.kind {
        Kind::Table => keys.census.count,
        Kind::Config => 1,
    };
    let needed = designs * values * (u64::from(workload.value_bytes) + BYTES_BESIDE_VALUE);
    match machine.memory_available_bytes {
        Some(available) if needed > available / 2 => Err(Failure::Usage(format!(
            "this workload needs about {} for {designs} designs, and {} are available; take fewer \
             keys (--max-keys) or smaller values (--value-bytes)",
            units::bytes(needed),
            units::bytes(available)
        ))),
        _ => Ok(()),
    }
}

impl Run<'_> {
    /// Measures everything; after Ctrl-C, what it could.
    fn measure(&self, output: &mut Output) -> Result<Report, Failure> {
        let mut report = Report {
            seed: self.args.seed,
            interrupted: false,
            machine: self.machine.clone(),
            costs: None,
            keys: self.keys.census.clone(),
            workload: self.workload.clone(),
            places: Vec::new(),
            noise: Noise {
                spread_percent: 0.0,
                taken_percent: 0.0,
                limit_percent: self.args.noise_limit.percent(),
            },
            sweeps: Vec::new(),
            checksum_errors_in_sweeps: 0,
        };
        let mut progress = output.progress(self.duration());
        if !self.args.skip.contains(&Part::Costs) {
            let costs = costs::measure(self.machine, self.args.quick, output, &mut progress)?;
            progress.suspend(|| costs.print(output))?;
            report.costs = Some(costs);
        }
        progress.suspend(|| report.print_input(output))?;
        self.race(&mut report, output, &mut progress)?;
        report.interrupted = output.interrupt().requested();
        Ok(report)
    }

    /// The ranking and the sweeps.
    fn race(
        &self,
        report: &mut Report,
        output: &mut Output,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let generator = ChaCha8Rng::seed_from_u64(self.args.seed);
        let mut track = Track {
            output,
            progress,
            generator,
        };
        let plan = self.plan(self.workload.threads, self.workload.reads_percent, &track);
        let kind = self.workload.kind.into();
        let mut contenders = track.prepare(rivals::designs(kind), kind, &plan)?;
        let rounds = self.workload.rounds;
        let series = track.race(&mut contenders, None, &plan, rounds, "ranking")?;
        report.places = rank::rank(&series);
        let cpus = self.machine.cpus.len() as u32;
        report.noise.spread_percent = rank::noise_percent(&report.places);
        report.noise.taken_percent =
            rank::taken_percent(&report.places, self.workload.threads, cpus);
        if self.args.skip.contains(&Part::Sweep) {
            return Ok(());
        }
        let over_reads = sweep::read_shares(self.workload.reads_percent);
        self.sweep(
            Over::ReadsPercent,
            &over_reads,
            report,
            &mut contenders,
            &mut track,
        )?;
        if !self.args.quick {
            let over_threads = self.thread_counts();
            self.sweep(
                Over::Threads,
                &over_threads,
                report,
                &mut contenders,
                &mut track,
            )?;
        }
        Ok(())
    }

    /// Races the leaders at each of `values`; stops after Ctrl-C, with the points that are whole.
    fn sweep(
        &self,
        over: Over,
        values: &[f64],
        report: &mut Report,
        contenders: &mut [Contender],
        track: &mut Track<'_>,
    ) -> Result<(), Failure> {
        let leaders = sweep::leaders(&report.places, self.args.quick);
        let (run_for, rounds) = self.sweep_rounds();
        let mut points = Vec::new();
        for &value in values {
            let (threads, reads) = match over {
                Over::ReadsPercent => (self.workload.threads, value),
                Over::Threads => (value as u32, self.workload.reads_percent),
            };
            if track.output.interrupt().requested() {
                break;
            }
            let plan = Plan {
                run_for,
                ..self.plan(threads, reads, track)
            };
            let series = track.race(
                contenders,
                Some(&leaders),
                &plan,
                rounds,
                &over.setting(value),
            )?;
            report.checksum_errors_in_sweeps += series
                .iter()
                .map(|series: &Series| series.checksum_errors)
                .sum::<u64>();
            if !track.output.interrupt().requested() {
                points.push(Point {
                    value,
                    places: rank::rank(&series),
                });
            }
        }
        let own = match over {
            Over::ReadsPercent => self.workload.reads_percent,
            Over::Threads => f64::from(self.workload.threads),
        };
        report.sweeps.push(Sweep { over, own, points });
        Ok(())
    }

    fn plan(&self, threads: u32, reads_percent: f64, track: &Track<'_>) -> Plan {
        let keys = self.keys.list.len() as u32;
        Plan {
            keys: self.keys.list.clone(),
            value_bytes: self.workload.value_bytes as usize,
            work: self.workload.work,
            operations: draw::operations(
                keys,
                threads,
                reads_percent,
                self.workload.popularity,
                self.args.seed,
            ),
            run_for: self.workload.run_for,
            stop: track.output.interrupt().flag(),
        }
    }

    fn thread_counts(&self) -> Vec<f64> {
        let cpus = self.machine.cpus.len() as u32;
        sweep::thread_counts(self.workload.threads, cpus)
            .into_iter()
            .map(f64::from)
            .collect()
    }

    /// Rounds of a sweep are fewer and shorter than those of the ranking: there are many points.
    fn sweep_rounds(&self) -> (Duration, u32) {
        const ROUNDS: u32 = 5;
        let shorter = if self.args.quick { 2 } else { 3 };
        (
            self.workload.run_for / shorter,
            ROUNDS.min(self.workload.rounds),
        )
    }

    /// About how long everything takes.
    fn duration(&self) -> Duration {
        let designs = rivals::designs(self.workload.kind.into()).len();
        let mut total = race::duration(designs, self.workload.run_for, self.workload.rounds);
        if !self.args.skip.contains(&Part::Costs) {
            total += costs::duration(self.args.quick);
        }
        if !self.args.skip.contains(&Part::Sweep) {
            let threads = if self.args.quick {
                0
            } else {
                self.thread_counts().len()
            };
            let points = sweep::read_shares(self.workload.reads_percent).len() + threads;
            let (run_for, rounds) = self.sweep_rounds();
            let leaders = sweep::leaders_at_most(self.args.quick);
            total += race::duration(leaders, run_for, rounds) * points as u32;
        }
        total
    }
}

/// A limit of noise in per cent; there is none above.
#[derive(Clone, Copy, Debug)]
struct NoiseLimit(f64);

impl NoiseLimit {
    fn percent(self) -> f64 {
        self.0
    }
}

impl std::str::FromStr for NoiseLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent.is_finite() => Ok(NoiseLimit(percent)),
            Ok(percent) => Err(format!("{percent} is out of range: more than 0 (per cent)")),
            Err(error) => Err(error.to_string()),
        }
    }
}
