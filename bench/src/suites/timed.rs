//! One operation in a loop, of all its rivals: for how long, in how many threads.

use std::time::Duration;

use super::rounds::{Case, Metric, Session};
use crate::Error;
use crate::cases::loops::Loop;
use crate::rivals::Rival;

/// Time for one rival in a round.
const BUDGET: Duration = Duration::from_millis(20);
const BUDGET_QUICK: Duration = Duration::from_millis(4);

/// The thread that works at the same time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Threads {
    /// So many, all of which do the same.
    Same(usize),
    /// One, and another one that does the opposite: writes, or reads.
    Beside,
}

/// Time for one rival in a round.
pub(crate) fn budget(quick: bool) -> Duration {
    if quick { BUDGET_QUICK } else { BUDGET }
}

/// The loop of a rival that is measured, if it has it.
pub(crate) type Of = fn(&Rival) -> Option<Loop>;

/// Measures these rivals, all of which have the loop, in interleaved slices.
pub(crate) fn measure(
    (id, title, threads): (&'static str, &'static str, Threads),
    metrics: &'static [Metric],
    rivals: &[&'static Rival],
    of: Of,
    budget: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let percent = session.planted_percent;
    let row = |looped: Loop| match threads {
        Threads::Same(threads) => looped.row(threads, percent),
        Threads::Beside => looped.row_beside(percent),
    };
    let rows = rivals.iter().filter_map(|rival| of(rival)).map(row).collect::<Vec<_>>();
    session.slices(Case::of(id, title, metrics, rivals), &rows, budget)
}
