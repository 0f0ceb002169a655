//! `rcu demo`: the library at work, explained line by line: readers, an updater, a reader that
//! stalls, and what the memory limit and the stall report do about it. All is public API.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use bench::units;
use quiescence::report::{self, StallReport};
use quiescence::tag::Private;
use quiescence::{Domain, Rcu};

use crate::exit::{Exit, Result};
use crate::number::within;
use crate::output::Output;

/// The arguments of `rcu demo`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Be done after so many seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = within(3..=60))]
    seconds: u32,
}

const READERS: usize = 2;
/// Words of a version of the table; and what may wait to be freed: 512 versions.
const WORDS: usize = 256;
const LIMIT_BYTES: u64 = 1 << 20;

/// A part of the demo: its title, what happens in it, and its lines, all of which take as long.
struct Part {
    title: &'static str,
    text: &'static str,
    lines: u32,
}

const PARTS: [Part; 4] = [
    Part {
        title: "1. Readers",
        text: "Two threads read a shared table, again and again. Each read is a section: plain \
               loads, and stores to memory of the thread's own. There is no lock.",
        lines: 3,
    },
    Part {
        title: "2. An updater",
        text: "A third thread replaces the table. Readers do not wait for it, nor it for them. An \
               old version waits until every section that may have seen it has ended; the time \
               until then is a grace period. Then it is freed.",
        lines: 4,
    },
    Part {
        title: "3. A reader that stalls",
        text: "One more reader enters a section and stays there. No grace period can end, so old \
               versions pile up. At the limit of 1 MiB the updater has to wait; the other readers \
               go on. The stall report says which thread is to blame, and where.",
        lines: 7,
    },
    Part {
        title: "4. It leaves",
        text: "The section ends, and the grace period with it. What waited is freed, and the \
               updater goes on.",
        lines: 3,
    },
];
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
    /// How long a line takes.
    line: Duration,
}

/// Runs `rcu demo`.
pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> Result<Exit> {
    let lines: u32 = PARTS.iter().map(|part| part.lines).sum();
    let line = Duration::from_secs(args.seconds.into()) / lines;
    let domain = Domain::builder().name("demo").build();
    let mut tuning = domain.tuning();
    tuning.bytes_max = LIMIT_BYTES;
    (tuning.stall_after, tuning.stall_after_expedited) = (Some(line), Some(line));
    domain.tune(tuning);
    let (part, [reads, updates]) = (AtomicUsize::new(0), [0, 0].map(AtomicU64::new));
    let stage = Stage { table: Rcu::new_in(vec![0; WORDS], domain), part, reads, updates, line };
    let (tell, told) = mpsc::channel();
    report::set_stall_hook(move |report| drop(tell.send(sentence(report))));
    // The limit is reached in the midst of the part in which a reader stalls.
    let pause = line * PARTS[STALLING].lines / 2 / (LIMIT_BYTES as u32 / (8 * WORDS as u32));
    let shown = thread::scope(|scope| {
        (0..READERS).for_each(|_| drop(scope.spawn(|| stage.read())));
        scope.spawn(|| stage.update(pause));
        scope.spawn(|| stage.stall());
        let shown = PARTS.iter().enumerate().try_for_each(|(number, part)| {
            stage.part.store(number, Relaxed);
            stage.show(part, &told, output)
        });
        stage.part.store(PARTS.len(), Relaxed);
        shown
    });
    report::take_stall_hook();
    shown.and_then(|()| stage.conclude(output))?;
    Ok(if output.interrupt.requested() { Exit::Interrupted } else { Exit::Ok })
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

    fn update(&self, pause: Duration) {
        while self.part() < PARTS.len() {
            if self.part() >= UPDATING {
                self.table.update(|table| vec![table[0] + 1; WORDS]);
                self.updates.fetch_add(1, Relaxed);
            }
            thread::sleep(pause);
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
    fn show(&self, part: &Part, told: &Receiver<String>, output: &mut Output) -> Result<()> {
        if output.must_stop() {
            return Ok(());
        }
        output.heading(part.title)?;
        output.paragraph(part.text)?;
        // A busy machine may take more lines to the limit, and to a report.
        let (mut lines, mut is_shown) = (0, self.part() != STALLING);
        while !output.must_stop() && (lines < part.lines || !is_shown) {
            let begin = (Instant::now(), self.reads.load(Relaxed), self.updates.load(Relaxed));
            thread::sleep(self.line);
            let seconds = begin.0.elapsed().as_secs_f64();
            let rate = |more: u64| units::count((more as f64 / seconds).round() as u64);
            let reads = rate(self.reads.load(Relaxed) - begin.1);
            let updates = rate(self.updates.load(Relaxed) - begin.2);
            let waiting = units::bytes(self.table.domain().statistics().bytes_waiting);
            output.line(format_args!(
                "  {reads:>11} reads/s  {updates:>6} updates/s  {waiting:>9} wait to be freed"
            ))?;
            lines += 1;
            for report in told.try_iter() {
                output.paragraph(report)?;
                is_shown |= self.table.domain().statistics().limit_waits > 0;
            }
        }
        Ok(())
    }

    fn conclude(&self, output: &mut Output) -> Result<()> {
        let counted = self.table.domain().statistics();
        output.heading("What the domain has counted")?;
        output.entries([
            ("grace periods", units::count(counted.grace_periods)),
            ("versions replaced", units::count(counted.callbacks_queued)),
            ("of them freed", units::count(counted.callbacks_run)),
            ("waits at the limit", units::count(counted.limit_waits)),
            ("stall reports", units::count(counted.stalls)),
        ])?;
        output.paragraph("`rcu top` shows these of any process with QUIESCENCE_STATS=1.")
    }
}

/// A stall report in a sentence.
fn sentence(report: &StallReport) -> String {
    let who = report.holdouts.first().map_or_else(String::new, |holdout| {
        let place = holdout.began.map_or_else(String::new, |began| format!(", begun at {began}"));
        format!(": thread {} is in a section{place}", holdout.thread_id.unwrap_or_default())
    });
    format!("Stall report: a grace period takes {:.1} s{who}.", report.age.as_secs_f64())
}
