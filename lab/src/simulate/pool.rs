//! Many simulations at once, over the CPUs of this machine.
//!
//! Which of them ends first depends on the machine; nothing else may. So results are put where
//! their job stands, and the thread that prints sees them in the order that was asked for. The main
//! thread only listens, draws the progress and looks whether anybody still wants the results. If
//! nobody does, jobs that do not look for themselves are left behind: they end with the process.

use std::num::NonZeroUsize;
use std::ops::ControlFlow::{self, Break, Continue};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;
use std::{mem, thread};

use crate::interrupt::Interrupt;
use crate::output::Output;

/// One thing to run.
pub(super) struct Job<R> {
    /// What it is called in the progress bar.
    pub(super) name: String,
    /// About how long it takes on a CPU of its own.
    pub(super) about: Duration,
    /// Runs it; `None` if it was asked to stop before its end.
    pub(super) run: Box<Run<R>>,
}

type Run<R> = dyn Fn(&mut At<'_>) -> Option<R> + Send + Sync;

/// Told by a job how far it is, and of how much; says whether it should go on.
pub(super) type At<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Which job is how far: at 0 it begins, at 1 it has ended, with a result unless it was stopped.
type News<R> = (usize, f64, Option<R>);

/// Runs every job and gives the results in the jobs' order; `None` for those that Ctrl-C kept from
/// ending.
pub(super) fn run<R: Send + 'static>(
    jobs: impl IntoIterator<Item = Job<R>>,
    output: &mut Output,
) -> Vec<Option<R>> {
    let jobs: Arc<[Job<R>]> = jobs.into_iter().collect();
    let count = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    let total: Duration = jobs.iter().map(|job| job.about).sum();
    output.progress.begin(total / count.max(1) as u32);
    let next = Arc::new(AtomicUsize::new(0));
    let (news, listening) = mpsc::channel();
    let begin = |_| {
        let (jobs, next, news) = (Arc::clone(&jobs), Arc::clone(&next), news.clone());
        let interrupt = output.interrupt.clone();
        thread::spawn(move || work(&jobs, &next, &interrupt, &news))
    };
    let threads: Vec<_> = (0..count).map(begin).collect();
    drop(news);
    let mut reached: Vec<(f64, Option<R>)> = jobs.iter().map(|_| (0.0, None)).collect();
    loop {
        // Some jobs tell only that they have ended. A closed pipe ends them as Ctrl-C does.
        let must_stop = output.must_stop();
        let by = match listening.recv_timeout(Duration::from_secs(if must_stop { 0 } else { 1 })) {
            Ok((job, share, result)) => {
                if share == 0.0 {
                    output.progress.announce(&jobs[job].name);
                }
                let (before, _) = mem::replace(&mut reached[job], (share, result));
                jobs[job].about.mul_f64((share - before) / count as f64)
            }
            Err(RecvTimeoutError::Timeout) if must_stop => break,
            Err(RecvTimeoutError::Timeout) => Duration::ZERO,
            Err(RecvTimeoutError::Disconnected) => {
                let ends = threads.into_iter().map(thread::JoinHandle::join);
                ends.for_each(|end| end.unwrap_or_else(|panic| resume_unwind(panic)));
                break;
            }
        };
        output.progress.advance(by);
    }
    output.progress.end();
    reached.into_iter().map(|(_, result)| result).collect()
}

/// Runs the jobs that no other thread has begun.
fn work<R>(jobs: &[Job<R>], next: &AtomicUsize, interrupt: &Interrupt, news: &Sender<News<R>>) {
    loop {
        // Relaxed: each number is given out once.
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(job) = jobs.get(number).filter(|_| !interrupt.requested()) else { return };
        // No thread listens any more only when the run is being given up.
        let tell = |share, result| drop(news.send((number, share, result)));
        let mut told = 0.0;
        let mut at = |now: u64, end: u64| {
            let share = (now as f64 / end.max(1) as f64).min(1.0);
            // A bar of 30 places need not hear of everything.
            if share > told + 0.01 {
                told = share;
                tell(share, None);
            }
            if interrupt.requested() { Break(()) } else { Continue(()) }
        };
        tell(0.0, None);
        let result = (job.run)(&mut at);
        tell(1.0, result);
    }
}

/// The runs that have ended, of all, with what came of each.
pub(super) fn ended<'a, T, R>(
    runs: &'a [T],
    results: &'a [Option<R>],
) -> impl Iterator<Item = (&'a T, &'a R)> {
    runs.iter().zip(results).filter_map(|(run, result)| Some((run, result.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputArgs;

    /// Gives its number back; the first one only after all the others.
    fn slow(number: usize, others_done: Arc<AtomicUsize>) -> Job<usize> {
        let run = move |at: &mut At<'_>| {
            let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
            if threads > 1 && number == 0 {
                while others_done.load(Ordering::Relaxed) < 9 {
                    thread::yield_now();
                }
            }
            others_done.fetch_add(1, Ordering::Relaxed);
            at(1, 2).is_continue().then_some(number * 10)
        };
        Job { name: number.to_string(), about: Duration::from_millis(1), run: Box::new(run) }
    }

    #[test]
    fn results_stand_where_their_jobs_do_whoever_is_first() {
        let mut output = Output::new(&OutputArgs::default()).unwrap();
        let others_done = Arc::new(AtomicUsize::new(0));
        let jobs = (0..10).map(|number| slow(number, Arc::clone(&others_done)));
        let results = run(jobs, &mut output);
        let expected: Vec<Option<usize>> = (0..10).map(|number| Some(number * 10)).collect();
        assert_eq!(results, expected);
    }
}
