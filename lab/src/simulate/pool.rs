//! Many simulations at once, over the CPUs of this machine.
//!
//! Which of them ends first depends on the machine; nothing else may. So results are put where
//! their job stands, and the thread that prints sees them in the order that was asked for. The main
//! thread only listens, draws the progress and looks whether anybody still wants the results.

use std::num::NonZeroUsize;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{mem, thread};

use crate::output::Output;

/// One thing to run.
pub(super) struct Job<'a, R> {
    /// What it is called in the progress bar.
    pub(super) name: String,
    /// About how long it takes on a CPU of its own.
    pub(super) about: Duration,
    /// Runs it; `None` if it was asked to stop before its end.
    pub(super) run: Box<Run<'a, R>>,
}

type Run<'a, R> = dyn Fn(&mut At<'_>) -> Option<R> + Sync + 'a;

/// Told by a job how far it is, and of how much; says whether it should go on.
pub(super) type At<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Runs every job and gives the results in the jobs' order; `None` for those that Ctrl-C kept from
/// ending.
pub(super) fn run<'a, R: Send + Sync>(
    jobs: impl IntoIterator<Item = Job<'a, R>>,
    output: &mut Output,
) -> Vec<Option<R>> {
    let jobs: &[Job<'_, R>] = &jobs.into_iter().collect::<Vec<_>>();
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    let total: Duration = jobs.iter().map(|job| job.about).sum();
    output.progress.begin(total / threads.max(1) as u32);
    let interrupt = output.interrupt.clone();
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<R>> = jobs.iter().map(|_| OnceLock::new()).collect();
    // Which job is how far: at 0 it begins, at 1 it has ended.
    let (news, listening) = mpsc::channel::<(usize, f64)>();
    thread::scope(|scope| {
        for _ in 0..threads {
            let news = news.clone();
            let (next, results, interrupt) = (&next, &results, &interrupt);
            scope.spawn(move || {
                loop {
                    // Relaxed: each number is given out once; each result is written once.
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    if job >= jobs.len() || interrupt.requested() {
                        return;
                    }
                    // No thread listens any more only when the run is being given up.
                    let tell = |share| news.send((job, share)).is_ok();
                    let mut told = 0.0;
                    let mut at = |now: u64, end: u64| {
                        let share = (now as f64 / end.max(1) as f64).min(1.0);
                        // A bar of 30 places need not hear of everything.
                        if share > told + 0.01 {
                            told = share;
                            tell(share);
                        }
                        if interrupt.requested() { Break(()) } else { Continue(()) }
                    };
                    tell(0.0);
                    if let Some(result) = (jobs[job].run)(&mut at) {
                        let _ = results[job].set(result);
                    }
                    tell(1.0);
                }
            });
        }
        drop(news);
        let mut reached = vec![0.0; jobs.len()];
        loop {
            // Some jobs tell only that they have ended.
            let by = match listening.recv_timeout(Duration::from_secs(1)) {
                Ok((job, share)) => {
                    if share == 0.0 {
                        output.progress.announce(&jobs[job].name);
                    }
                    let more = share - mem::replace(&mut reached[job], share);
                    jobs[job].about.mul_f64(more / threads as f64)
                }
                Err(RecvTimeoutError::Timeout) => Duration::ZERO,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // A closed pipe ends the jobs as Ctrl-C does.
            let _ = output.must_stop();
            output.progress.advance(by);
        }
    });
    output.progress.end();
    results.into_iter().map(OnceLock::into_inner).collect()
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
    fn slow(number: usize, others_done: &AtomicUsize) -> Job<'_, usize> {
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
        let others_done = AtomicUsize::new(0);
        let jobs: Vec<_> = (0..10).map(|number| slow(number, &others_done)).collect();
        let results = run(jobs, &mut output);
        let expected: Vec<Option<usize>> = (0..10).map(|number| Some(number * 10)).collect();
        assert_eq!(results, expected);
    }
}
