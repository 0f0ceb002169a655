//! Torture: tries to catch the library freeing memory that is still being read.
//!
//! A run has themes ([`themes`]). In the first, readers of every kind look at blocks with an age
//! ([`pool`]) while updaters replace them in every way there is, in five domains at once, with more
//! threads than CPUs. A reader that sees an age above 1 has caught a grace period that ended too
//! early.
//!
//! Other themes are about deferral ([`deferral`]): floods of callbacks, hardly any memory,
//! short-lived threads, processes that are stopped and that fork. Others are about tools on per-CPU
//! words ([`percpu`]): sleepable domains, restartable reads, counters and locks, used by threads
//! that move from CPU to CPU and are interrupted by signals all the time. The rest are about hazard
//! pointers, cells with exact counts, atomic pointers with tags, lists, queues and stacks, and hash
//! maps ([`maps`]).
//!
//! This program, which `rcu torture` becomes, runs it on the library exactly as users have it. The
//! copy of the library that `cargo xtask mutants` writes has hooks: they delay threads at the steps
//! where races live ([`delays`]), which finds more, and `--mutant NAME` removes a step
//! ([`removed`]), which shows that the run would find that fault. The program has few dependencies,
//! so that a build of that copy takes little time.
//!
//! Reading order: [`kinds`], [`pool`], [`arena`] are what is read and updated; [`readers`],
//! [`passing`] and [`updaters`] do it, in the domains of [`places`]; [`context`] is the run as one
//! thread sees it; [`fixture`] has all threads with their parts; [`watch`] ends the run, hung or
//! not; [`report`] tells, on a [`screen`].

mod arena;
mod canary;
mod fixture;
mod deferral;
mod delays;
mod fork;
mod kinds;
mod ledger;
mod maps;
mod removed;
mod passing;
mod percpu;
mod places;
mod pool;
mod random;
mod readers;
mod report;
mod screen;
mod shuffler;
mod context;
mod task;
mod themes;
mod updaters;
mod watch;

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use clap::Parser;
use quiescence::tuning::{Engine, Fences, PerCpuPath, fences, per_cpu_path};
use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use fixture::Fixture;
use ledger::Ledger;
use report::{Report, Setup};
use screen::{Failure, Screen};
use themes::{Theme, Themes};
use watch::{Ending, Watch};

/// The commit that this program was built from; the build script asks git.
const COMMIT: &str = env!("RCU_COMMIT");

/// Threads where no number is given: every part at least once, and more than there are CPUs.
const READERS_MIN: usize = 18;
const UPDATERS_MIN: usize = 7;
const READERS_PER_CPU: usize = 2;

/// Threads that a torture may have of a kind.
const THREADS_MAX: u64 = 10_000;

/// How long a torture may be: a year.
const SECONDS_MAX: u64 = 365 * 86_400;

/// What the help says at its end.
const HELP: &str = "\
Tortures the library exactly as programs use it. A copy with hooks also delays
threads where races hide and removes steps: `cargo xtask mutants --copy -- RUN`
where RUN is `cargo run --release -p quiescence-torture -- [--mutant NAME]`.";

/// Tries to catch the library freeing memory that is still being read.
#[derive(Debug, Parser)]
#[command(name = "rcu-torture", version, after_help = HELP)]
struct Args {
    /// How long, in seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = up_to(SECONDS_MAX))]
    seconds: u64,
    /// How long, in minutes, instead of --seconds
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = up_to(SECONDS_MAX / 60))]
    minutes: Option<u64>,
    /// Run only these themes; by default all but forks
    #[arg(long, value_name = "THEME", value_delimiter = ',')]
    only: Vec<Theme>,
    /// Threads that read; by default more than there are CPUs
    #[arg(long, value_name = "N", value_parser = up_to(THREADS_MAX))]
    readers: Option<u64>,
    /// Threads that update; by default more than there are CPUs
    #[arg(long, value_name = "N", value_parser = up_to(THREADS_MAX))]
    updaters: Option<u64>,
    /// The seed of the random choices; scheduling is up to the system
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The engine of the private domains: adaptive, poll, tick or token
    #[arg(long, value_name = "NAME", default_value_t = Engine::default())]
    engine: Engine,
    /// Remove this step, in a build with hooks; succeed if that is noticed
    #[arg(long, value_name = "NAME", conflicts_with = "list_mutants")]
    mutant: Option<String>,
    /// Print the steps that can be removed, one name per line
    #[arg(long)]
    list_mutants: bool,
    /// Of a child process of a torture: ends with it
    #[arg(long, hide = true)]
    child: bool,
    /// Also write the results as JSON to FILE; `-`: to standard output only
    #[arg(long, value_name = "FILE", conflicts_with = "list_mutants")]
    json: Option<PathBuf>,
}

/// A number from 1 on.
fn up_to(most: u64) -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=most)
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => ExitCode::from(code),
        // Before anything was found: the reader has what it wanted.
        Err(Failure::Io { error, .. }) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            // An error that cannot be written has no thread to read it; the exit code still tells.
            let _ = writeln!(io::stderr(), "error: {error}");
            // As `rcu`: 5 where the disk is full or has failed, 2 where an argument is wrong.
            ExitCode::from(if is_of_the_disk(&error) { 5 } else { 2 })
        }
    }
}

fn is_of_the_disk(failure: &Failure) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let Failure::Io { error, .. } = failure else { return false };
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
        || error.raw_os_error() == Some(libc::EIO)
}

/// Tortures the library and reports. Returns the exit code.
fn run(args: &Args) -> Result<u8, Failure> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in the order of registration, so the second signal ends the process.
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt))
            .and_then(|_| flag::register(signal, Arc::clone(&interrupt)))
            .map_err(|error| Failure::io("cannot handle Ctrl-C", error))?;
    }
    let output = &Screen::new(args.json.as_deref())?;
    let write = |error| Failure::io("cannot write what was found", error);
    if args.list_mutants {
        removed::names().try_for_each(|name| output.line(name)).map_err(write)?;
        return Ok(0);
    }
    if args.child {
        // Where the system has no such thing, it ends by itself after its time.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
    let removed = args.mutant.as_deref().map(removed::by_name).transpose()?;
    if let Some(path) = removed.and_then(|removed| removed.per_cpu) {
        be_on(path)?;
    }
    let setup = args.setup(removed);
    // A child has some of its parent's themes: all of them together are to notice.
    let is_about = |removed: &removed::Removed| args.child || setup.themes.has(removed.theme);
    if let Some(removed) = removed.filter(|removed| !is_about(removed)) {
        let themes = Themes::new(&[removed.theme]).names().join(", ");
        let name = removed.name;
        let message = format!("{name} is noticed by the theme {themes}, which --only leaves out");
        return Err(Failure::Usage(message));
    }
    setup.print(output).map_err(write)?;
    if let Some(removed) = removed {
        assert!(mutants::remove(removed.name), "one step is removed in a process");
    }
    delays::install(setup.seed);
    let fixture = cast(&setup).map_err(|error| Failure::io("cannot shuffle", error))?;
    let ledger = Arc::new(Ledger::new(fixture.records()));
    let ending = torture(&setup, &fixture, &ledger, &interrupt)?;
    let report = Report::new(&setup, &ledger, fixture.counts(), ending);
    // Each is worth having even if the other cannot be written; the verdict, even if none is read.
    let written = [output.json(&report), report.print(output)];
    let mut errors = written.into_iter().filter_map(Result::err);
    match errors.find(|error| error.kind() != io::ErrorKind::BrokenPipe) {
        Some(error) => Err(write(error)),
        None => Ok(report.verdict.exit_code()),
    }
}

/// Who takes part.
fn cast(setup: &Setup) -> io::Result<Fixture> {
    let (mut fixture, themes) = (Fixture::new()?, &setup.themes);
    if themes.has(Theme::Readers) {
        places::cast(&mut fixture, setup);
    }
    deferral::cast(&mut fixture, setup);
    themes.0.iter().for_each(|theme| percpu::cast(&mut fixture, *theme, setup.cpus));
    if themes.has(Theme::Maps) {
        maps::cast(&mut fixture, setup.engine);
    }
    Ok(fixture.complete())
}

/// Sees to it that the process counts in this way: it can begin anew as a program that does without
/// restartable sequences.
fn be_on(path: PerCpuPath) -> Result<(), Failure> {
    if per_cpu_path() == path {
        return Ok(());
    }
    if path == PerCpuPath::Restartable {
        let message = "that step is of restartable sequences, which this process does not have";
        return Err(Failure::Usage(message.to_owned()));
    }
    let cannot = |error| Failure::io("cannot begin anew", error);
    let program = env::current_exe().map_err(cannot)?;
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env("QUIESCENCE_PERCPU", "portable");
    Err(cannot(command.exec()))
}

/// Runs the threads to the end, as far as they can be.
fn torture(
    setup: &Setup,
    fixture: &Fixture,
    ledger: &Arc<Ledger>,
    interrupt: &AtomicBool,
) -> Result<Ending, Failure> {
    let limit = Duration::from_secs(setup.seconds);
    let mut watch = Watch::new(ledger, interrupt, setup.mutant.is_some());
    let start = |records| {
        let started = fixture.start(records, ledger, setup.seed);
        started.map_err(|error| Failure::io("cannot start a thread", error))
    };
    start(fixture.players())?;
    let mut ending = watch.until(fixture.players(), |ledger| ledger.elapsed() >= limit);
    ledger.stop();
    if ending == Ending::Finished {
        ending = watch.until_ended(fixture.players());
    }
    if ending == Ending::Finished {
        start(fixture.closer())?;
        ending = watch.until_ended(fixture.closer());
    }
    Ok(ending)
}

impl Args {
    fn setup(&self, removed: Option<removed::Removed>) -> Setup {
        let cpus = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let readers = (cpus * READERS_PER_CPU).max(READERS_MIN);
        let updaters = (cpus + 1).max(UPDATERS_MIN);
        let is_portable = per_cpu_path() == PerCpuPath::Portable;
        Setup {
            seed: self.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish()),
            commit: COMMIT,
            fences: if fences() == Fences::Portable { "portable" } else { "membarrier" },
            per_cpu: if is_portable { "portable" } else { "restartable" },
            engine: self.engine,
            mutant: removed.map(|removed| removed.name),
            themes: match removed {
                Some(removed) if self.only.is_empty() => Themes::new(&[removed.theme]),
                _ => Themes::new(&self.only),
            },
            seconds: self.minutes.map_or(self.seconds, |minutes| 60 * minutes),
            cpus,
            readers: self.readers.map_or(readers, |readers| readers as usize),
            updaters: self.updaters.map_or(updaters, |updaters| updaters as usize),
        }
    }
}
