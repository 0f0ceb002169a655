//! The progress of a long run on standard error, and what those who measure see of the output.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

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

/// The progress of a long run: a bar with the time left; or a line now and then, if standard error
/// is no terminal.
///
/// It is drawn only when told to, between measurements: a thread that redraws on a
/// tick would disturb what is being measured.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Its length is the total, in nanoseconds.
    bar: ProgressBar,
    /// When the next line is due, where there is no bar.
    next_line: Duration,
}

/// No line is written of a run that takes less than this.
const FIRST_LINE: Duration = Duration::from_secs(2);
const LINE_EVERY: Duration = Duration::from_secs(10);

impl Progress {
    /// Of a run of about `total`; nothing is drawn of one that takes no time.
    pub(crate) fn new(total: Duration) -> Progress {
        let target = if !total.is_zero() && io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total.as_nanos() as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {prefix}  {wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar, next_line: FIRST_LINE }
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
        self.bar.set_message(what.to_string());
        self.draw();
    }

    /// Says that `by` more of the total is done.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.bar.inc(by.as_nanos() as u64);
        self.draw();
    }

    /// Says that the total is longer by `by` than was known before.
    pub(crate) fn expect_more(&mut self, by: Duration) {
        self.bar.inc_length(by.as_nanos() as u64);
    }

    /// Draws what is left now.
    pub(crate) fn draw(&mut self) {
        let (total, done) = (self.bar.length().unwrap_or(0), self.bar.position());
        // On a busy machine everything takes longer than planned, and what is left will too.
        let planned = total.saturating_sub(done) as f64 / 1e9;
        let elapsed = self.bar.elapsed();
        // What took a moment only tells little.
        let slower = match done > total / 20 {
            true => elapsed.as_secs_f64() / (done as f64 / 1e9).max(1.0),
            false => 1.0,
        };
        let left = match (planned * slower.max(1.0)).ceil() {
            0.0 => "longer than planned".to_owned(),
            seconds => format!("{seconds:>3} s left"),
        };
        self.bar.set_prefix(left.clone());
        if self.bar.is_hidden() && self.is_line_due(elapsed) {
            // A line that cannot be written has no thread to read it.
            let _ = writeln!(io::stderr(), "{}: {}", left.trim_start(), self.bar.message());
        }
    }

    /// Whether a line is due at this time of the run; if so, when the next one is.
    fn is_line_due(&mut self, elapsed: Duration) -> bool {
        let is_due = self.bar.length() != Some(0) && elapsed >= self.next_line;
        if is_due {
            self.next_line = elapsed + LINE_EVERY;
        }
        is_due
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_writes_a_line_now_and_then_to_a_file() {
        let due_at = |total: u64| {
            let mut progress = Progress::new(Duration::from_secs(total));
            let is_due = |second: &u64| progress.is_line_due(Duration::from_secs(*second));
            (0..30).filter(is_due).collect::<Vec<u64>>()
        };
        assert_eq!(due_at(60), [2, 12, 22]);
        assert_eq!(due_at(0), [0; 0], "no run");
    }

    /// Jobs of milliseconds on many CPUs tell steps of less than a microsecond.
    #[test]
    fn small_steps_of_a_run_add_up() {
        let mut progress = Progress::new(Duration::from_micros(100));
        (0..1_000).for_each(|_| progress.advance(Duration::from_nanos(100)));
        assert_eq!(progress.bar.length(), Some(progress.bar.position()));
    }
}
