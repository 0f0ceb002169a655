//! `rcu demo`: the library at work, explained step by step: readers, an updater, a reader that
//! stalls, and what the memory limit and the stall report do about it. All is public API.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use bench::{data, units};
use quiescence::report::{self, StallReport};
use quiescence::tag::Private;
use quiescence::{Domain, Rcu};
use serde::Deserialize;

use crate::exit::{Exit, Failure, Result};
use crate::output::Output;

/// The domain's name.
const NAME: &str = "demo";
/// Words of a version of the table; and what may wait to be freed: 512 versions.
const WORDS: usize = 256;
const LIMIT_BYTES: u64 = 1 << 20;
/// A busy machine may need more lines for the limit and the report, but no more than this many
/// times as many.
const LONGER_MAX: u32 = 4;

/// A part of the demo: its title, what happens in it, and its lines, all of which take as long.
#[derive(Deserialize)]
struct Part {
    title: String,
    text: String,
    lines: u32,
}

static PARTS: LazyLock<Vec<Part>> = LazyLock::new(|| data::rows(include_str!("demo.toml")));
/// The parts in which the updater begins, and the reader stalls.
const UPDATING: usize = 1;
const STALLING: usize = 2;

/// What the threads share.
struct Stage {
    table: Rcu<Vec<u64>, Private>,
    /// The part that is on; past the last one all threads end.
    part: AtomicUsize,
    reads: AtomicU64,
    updates: AtomicU64,
    /// How long a line takes, and how long the updater pauses after each update.
    line: Duration,
    pause: Duration,
}

/// Runs `rcu demo`, which takes about so many seconds.
pub(crate) fn run(seconds: u32, output: &mut Output) -> Result<Exit> {
    let lines: u32 = PARTS.iter().map(|part| part.lines).sum();
    let line = Duration::from_secs(seconds.into()) / lines;
    let domain = Domain::builder().name(NAME).build();
    let mut tuning = domain.tuning();
    // Bytes decide, whatever the environment says: no version is smaller than one.
    (tuning.bytes_max, tuning.objects_max) = (LIMIT_BYTES, LIMIT_BYTES);
    (tuning.stall_after, tuning.stall_after_expedited) = (Some(line), Some(line));
    domain.tune(tuning);
    let (part, [reads, updates]) = (AtomicUsize::new(0), [0, 0].map(AtomicU64::new));
    // The limit is reached in the middle of the part in which a reader stalls.
    let pause = line * PARTS[STALLING].lines / 2 / (LIMIT_BYTES as u32 / (8 * WORDS as u32));
    let table = Rcu::new_in(vec![0; WORDS], domain);
    let stage = &Stage { table, part, reads, updates, line, pause };
    let (tell, told) = mpsc::channel();
    report::set_stall_hook(move |report| {
        if report.domain == NAME {
            sentence(report).map(|text| tell.send(text));
        }
    });
    let begun = thread::scope(|scope| {
        let reader = ("reader", Stage::read as fn(&Stage));
        let all = [reader, reader, ("updater", Stage::update), ("stalled-reader", Stage::stall)];
        let begun = all.into_iter().try_for_each(|(name, work)| {
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn_scoped(scope, move || work(stage)).map(drop)
        });
        for (number, part) in PARTS.iter().enumerate().filter(|_| begun.is_ok()) {
            stage.part.store(number, Relaxed);
            stage.show(part, &told, output);
        }
        stage.part.store(PARTS.len(), Relaxed);
        begun
    });
    report::take_stall_hook();
    begun.map_err(|error| Failure::io("cannot start a thread", error))?;
    stage.conclude(output);
    Ok(output.exit(Exit::Ok))
}

impl Stage {
    /// The part that is on. Relaxed: the threads hand each other nothing but the table.
    fn part(&self) -> usize {
        self.part.load(Relaxed)
    }

    fn read(&self) {
        const AT_ONCE: u64 = 1_000;
        while self.part() < PARTS.len() {
            for _ in 0..AT_ONCE {
                let table = self.table.read();
                assert_eq!(table[0], table[WORDS - 1], "a version is seen whole");
            }
            self.reads.fetch_add(AT_ONCE, Relaxed);
        }
    }

    fn update(&self) {
        // Each update has its time: those that a busy machine is late for are made at once.
        let mut next = Instant::now();
        while self.part() < PARTS.len() {
            let now = Instant::now();
            if self.part() < UPDATING {
                next = now;
            } else if next <= now {
                self.table.update(|table| vec![table[0] + 1; WORDS]);
                self.updates.fetch_add(1, Relaxed);
                next += self.pause;
                continue;
            }
            thread::sleep(self.pause);
        }
    }

    fn stall(&self) {
        let wait = || thread::sleep(Duration::from_millis(5));
        while self.part() < STALLING {
            wait();
        }
        let _section = self.table.domain().read();
        while self.part() == STALLING {
            wait();
        }
    }

    /// Tells what happens in a part, a line at a time.
    fn show(&self, part: &Part, told: &Receiver<String>, output: &mut Output) {
        if output.must_stop() {
            return;
        }
        output.heading(&part.title);
        output.paragraph(&part.text);
        let is_stalling = self.part() == STALLING;
        let lines_max = if is_stalling { part.lines * LONGER_MAX } else { part.lines };
        let (mut lines, mut is_reported) = (0, false);
        let is_at_limit = || self.table.domain().statistics().limit_waits > 0;
        while lines < part.lines || (lines < lines_max && !(is_reported && is_at_limit())) {
            let begin = (Instant::now(), self.reads.load(Relaxed), self.updates.load(Relaxed));
            if !output.wait(self.line, || true) {
                return;
            }
            let seconds = begin.0.elapsed().as_secs_f64();
            let rate = |more: u64| units::count((more as f64 / seconds).round() as u64);
            let reads = rate(self.reads.load(Relaxed) - begin.1);
            let updates = rate(self.updates.load(Relaxed) - begin.2);
            let waiting = units::bytes(self.table.domain().statistics().bytes_waiting);
            output.line(format_args!(
                "  {reads:>11} reads/s  {updates:>6} updates/s  {waiting:>9} waiting to be freed"
            ));
            lines += 1;
            for report in told.try_iter() {
                output.paragraph(report);
                is_reported = true;
            }
        }
        let missing =
            [(is_reported, "no stall report came"), (is_at_limit(), "the limit was not reached")];
        for (_, what) in missing.iter().filter(|(is_there, _)| is_stalling && !is_there) {
            output.paragraph(format!("In {lines} lines, {what}: this machine may be too busy."));
        }
    }

    fn conclude(&self, output: &mut Output) {
        // What the updater left is freed, too, so that the figures add up.
        self.table.domain().barrier();
        let counted = self.table.domain().statistics();
        output.heading("Statistics of the domain");
        output.entries([
            ("grace periods", units::count(counted.grace_periods)),
            ("versions replaced", units::count(counted.callbacks_queued)),
            ("of these, freed", units::count(counted.callbacks_run)),
            ("waits at the limit", units::count(counted.limit_waits)),
            ("stall reports", units::count(counted.stalls)),
        ]);
        output.paragraph("`rcu top` shows these for any process with QUIESCENCE_STATS=1.");
    }
}

/// A stall report in a sentence, if its reader was still there when it was made.
fn sentence(report: &StallReport) -> Option<String> {
    let holdout = report.holdouts.first()?;
    let name = holdout.thread_name.as_deref().unwrap_or("without a name");
    let place = holdout.began.map_or_else(String::new, |began| format!(", begun at {began}"));
    let seconds = report.age.as_secs_f64();
    Some(format!(
        "Stall report: a grace period has taken {seconds:.1} s so far: the thread {name} is in a \
         section{place}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputArgs;

    #[test]
    fn the_part_that_stalls_ends_without_a_report_and_says_so() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let args = OutputArgs { markdown: Some(file.path().to_owned()), ..OutputArgs::default() };
        let mut output = Output::new(&args).unwrap();
        let stage = Stage {
            table: Rcu::new_in(vec![0; WORDS], Domain::new()),
            part: AtomicUsize::new(STALLING),
            reads: AtomicU64::new(0),
            updates: AtomicU64::new(0),
            line: Duration::ZERO,
            pause: Duration::ZERO,
        };
        stage.show(&PARTS[STALLING], &mpsc::channel().1, &mut output);
        output.finish().unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text.matches("waiting to be freed").count(), 28, "{text}");
        for missing in ["no stall report came", "the limit was not reached"] {
            assert!(text.contains(missing), "{missing}: {text}");
        }
    }
}
