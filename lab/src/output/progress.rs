//! The progress of a long run on standard error, and what those who measure see of the output.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use bench::Host;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Output;

/// The output as those who measure see it.
impl Host for Output {
    fn must_stop(&mut self) -> bool {
        Output::must_stop(self)
    }

    fn announce(&mut self, what: &dyn Display) {
        self.progress.announce(what);
    }

    fn advance(&mut self, by: Duration) {
        self.progress.advance(by);
    }

    fn note(&mut self, text: &dyn Display) {
        Output::note(self, text);
    }
}

/// The progress of a long run: a bar with the time left.
///
/// It is drawn only when told to, between measurements: a thread that redraws on a
/// tick would disturb what is being measured.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    total: Duration,
    done: Duration,
}

impl Progress {
    /// Of a run of about `total`; nothing is drawn of one that takes no time.
    pub(crate) fn new(total: Duration) -> Progress {
        let target = if !total.is_zero() && io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total.as_millis() as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {prefix} left  {wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar, start: Instant::now(), total, done: Duration::ZERO }
    }

    /// Shows a run of about `total`.
    pub(crate) fn begin(&mut self, total: Duration) {
        *self = Progress::new(total);
    }

    /// The run is over.
    pub(crate) fn end(&mut self) {
        *self = Progress::new(Duration::ZERO);
    }

    /// Says what is being done now.
    pub(crate) fn announce(&mut self, what: impl Display) {
        self.draw();
        self.bar.set_message(what.to_string());
    }

    /// Says that `by` more of the total is done.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.done += by;
        self.draw();
    }

    /// Says that the total is longer by `by` than was known before.
    pub(crate) fn expect_more(&mut self, by: Duration) {
        self.total += by;
        self.bar.set_length(self.total.as_millis() as u64);
    }

    fn draw(&self) {
        // On a busy machine everything takes longer than planned, and what is left will too.
        let planned = self.total.saturating_sub(self.done).as_secs_f64();
        let slower = self.start.elapsed().as_secs_f64() / self.done.as_secs_f64().max(1.0);
        let left = (planned * slower.max(1.0)).ceil();
        self.bar.set_prefix(format!("{left:>3} s"));
        self.bar.set_position(self.done.as_millis() as u64);
    }

    /// Takes the bar off the screen while something else is written.
    pub(super) fn suspend<R>(&self, write: impl FnOnce() -> R) -> R {
        self.bar.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
