//! Many simulations at once, over the CPUs of this machine.
//!
//! Which of them ends first depends on the machine; nothing else may. So results are put where
//! their job stands, and the thread that prints sees them in the order that was asked for. The main
//! thread only listens, draws the progress and looks whether anybody still wants the results.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::output::{Output, Progress};

/// One thing to run.
pub(super) trait Job: Sync {
    /// What comes out.
    type Result: Send;
    /// What it is called in the progress bar.
    fn name(&self) -> String;
    /// About how long it takes on a CPU of its own.
    fn about(&self) -> Duration;
    /// Runs it; `None` if it was asked to stop before its end.
    fn run(&self, watch: &Watch<'_>) -> Option<Self::Result>;
}

/// Whom a job tells how far it is, and who tells it to stop.
#[derive(Debug)]
pub(super) struct Watch<'a> {
    job: usize,
    news: Sender<News>,
    interrupt: &'a Interrupt,
    given_up: &'a AtomicBool,
}

/// What the main thread receives.
#[derive(Debug)]
enum News {
    Began(usize),
    /// So many thousandths of the job are done.
    Reached(usize, u16),
    Ended(usize),
}

impl Watch<'_> {
    /// Tells how far the job is, in thousandths. Returns whether it should go on.
    pub(super) fn reached(&self, permille: u16) -> bool {
        self.tell(News::Reached(self.job, permille));
        !self.should_stop()
    }

    fn tell(&self, news: News) {
        // No thread listens any more only when the run is being given up.
        let _ = self.news.send(news);
    }

    /// Whether the user or a closed pipe wants the job to stop.
    pub(super) fn should_stop(&self) -> bool {
        // Relaxed: the flags carry no data; they only have to be seen soon.
        self.interrupt.requested() || self.given_up.load(Ordering::Relaxed)
    }
}

/// Runs every job and gives the results in the jobs' order; `None` for those that Ctrl-C kept from
/// ending.
///
/// # Errors
/// [`Failure::BrokenPipe`] when no process reads the results any more.
pub(super) fn run<J: Job>(
    jobs: &[J],
    output: &mut Output,
) -> Result<Vec<Option<J::Result>>, Failure> {
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(jobs.len());
    let total: Duration = jobs.iter().map(Job::about).sum();
    let progress = output.progress(total / threads.max(1) as u32);
    let interrupt = output.interrupt().clone();
    let given_up = AtomicBool::new(false);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<J::Result>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (news, listening) = mpsc::channel();
    let listened = thread::scope(|scope| {
        for _ in 0..threads {
            let news = news.clone();
            let (next, results, interrupt, given_up) = (&next, &results, &interrupt, &given_up);
            scope.spawn(move || {
                loop {
                    // Relaxed: each number is given out once; the results are under locks.
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let watch = Watch { job, news: news.clone(), interrupt, given_up };
                    if job >= jobs.len() || watch.should_stop() {
                        return;
                    }
                    watch.tell(News::Began(job));
                    let result = jobs[job].run(&watch);
                    *results[job].lock().unwrap_or_else(PoisonError::into_inner) = result;
                    watch.tell(News::Ended(job));
                }
            });
        }
        drop(news);
        listen(jobs, &listening, progress, threads, output)
            // Relaxed: as above.
            .inspect_err(|_| given_up.store(true, Ordering::Relaxed))
    });
    listened?;
    let into_result = |place: Mutex<Option<J::Result>>| {
        place.into_inner().unwrap_or_else(PoisonError::into_inner)
    };
    Ok(results.into_iter().map(into_result).collect())
}

/// Draws the progress until every thread has ended.
fn listen<J: Job>(
    jobs: &[J],
    news: &Receiver<News>,
    mut progress: Progress,
    threads: usize,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut done = vec![Duration::ZERO; jobs.len()];
    let share = |job: usize, permille: u16| {
        jobs[job].about() / threads.max(1) as u32 * u32::from(permille.min(1_000)) / 1_000
    };
    while let Ok(news) = news.recv() {
        output.check_reader()?;
        let (job, reached) = match news {
            News::Began(job) => {
                progress.announce(jobs[job].name());
                (job, Duration::ZERO)
            }
            News::Reached(job, permille) => (job, share(job, permille)),
            News::Ended(job) => (job, share(job, 1_000)),
        };
        progress.advance(reached.saturating_sub(done[job]));
        done[job] = done[job].max(reached);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::OutputArgs;

    /// Gives its number back; the first ones only after all the others.
    struct Slow<'a> {
        number: usize,
        others_done: &'a AtomicUsize,
    }

    impl Job for Slow<'_> {
        type Result = usize;

        fn name(&self) -> String {
            self.number.to_string()
        }

        fn about(&self) -> Duration {
            Duration::from_millis(1)
        }

        fn run(&self, watch: &Watch<'_>) -> Option<usize> {
            let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
            if threads > 1 && self.number == 0 {
                while self.others_done.load(Ordering::Relaxed) < 9 {
                    thread::yield_now();
                }
            }
            self.others_done.fetch_add(1, Ordering::Relaxed);
            watch.reached(500).then_some(self.number * 10)
        }
    }

    #[test]
    fn results_stand_where_their_jobs_do_whoever_is_first() {
        let interrupt = Interrupt::install().unwrap();
        let mut output = Output::new(&OutputArgs::default(), interrupt).unwrap();
        let others_done = AtomicUsize::new(0);
        let jobs: Vec<Slow<'_>> =
            (0..10).map(|number| Slow { number, others_done: &others_done }).collect();
        let results = run(&jobs, &mut output).unwrap();
        let expected: Vec<Option<usize>> = (0..10).map(|number| Some(number * 10)).collect();
        assert_eq!(results, expected);
    }
}
