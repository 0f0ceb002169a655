//! Batches of callbacks: when a thread's open callbacks are closed, how much their grace period is
//! wanted, and how many of those that are ready are run in one go. Numbers only, as in
//! [`segments`](crate::segments) and [`limit`](crate::limit).

use crate::limit::{Amount, Zone};
use crate::policy::Urgency;
use crate::segments::Segments;

/// Callbacks in a full batch, at most: one grace period's cost is shared by so many. The thread
/// that fills a batch executes its fence, which interrupts the readers: where it comes to neither
/// one update in thousands nor one read in thousands, it is not in their 99.9th percentiles.
pub const BATCH: u64 = 16_384;

/// The same for objects, which their thread frees itself, while grace periods find no other reader
/// and cost next to nothing: what is freed is in the CPU's cache still.
pub const BATCH_ALONE: u64 = 512;

/// The same in a domain of hazard pointers. Its grace period is a fence and a look at all slots,
/// which wait for no reader; what is freed soon is in the CPU's cache still.
pub const BATCH_HAZARD: u64 = 1_024;

/// The part of the limit that a full batch is, at most: a batch that waits, one that is being
/// filled and one that is being run must fit in well.
const BATCH_SHARE: u64 = 8;

/// The part of the ready callbacks that is run in one go is one in 2^this; the kernel's
/// `rcu_divisor`.
const RUN_SHIFT: u32 = 7;

/// Callbacks of one kind that are run between two looks at the clock.
pub const RUN_CHUNK: u64 = 32;

/// Callbacks that are run in one go without a look at the clock.
pub const RUN_UNTIMED: u64 = 2 * RUN_CHUNK;

/// Additions between two looks at what is due.
pub const TEND_EVERY: u32 = 8;

/// Callbacks that such a look runs.
pub const RUN_SHARE: u64 = run_share(TEND_EVERY as u64);

/// How many callbacks a thread runs that has added so many since it last ran some: a few more, so
/// that a thread that keeps retiring runs more than it adds; and not many more, so that what it
/// frees is what it needs next.
///
/// ```
/// use grace::batch::{RUN_SHARE, TEND_EVERY, run_share};
///
/// assert_eq!(run_share(TEND_EVERY.into()), RUN_SHARE);
/// assert_eq!(run_share(64), 73);
/// assert_eq!(run_share(1), 2, "always more than were added");
/// ```
pub const fn run_share(added: u64) -> u64 {
    added.saturating_add(added / 8 + 1)
}

/// Runs of a few callbacks that the worker gives one queue before the next one gets its turn; fewer
/// where the worker's [turn](crate::worker::turn_is_over) is over before.
pub const RUNS_PER_TURN: usize = 64;

/// How long callbacks wait for company by default, in nanoseconds.
pub const LAZY_NS: u64 = 100_000_000;

/// The same in a domain of hazard pointers, whose grace periods wait for no reader. What is
/// replaced there is a value of its own, and may be large.
pub const LAZY_HAZARD_NS: u64 = 4_000_000;

/// Callbacks that are run in one go at least, by default.
pub const RUN_MIN: u64 = 32;

/// After how long in one go a thread sees to something else, by default, in nanoseconds.
pub const RUN_NS: u64 = 3_000_000;

/// What one queue wants of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wants {
    /// It is empty.
    Nothing,
    /// Something is open: it may wait for company.
    Company,
    /// Something waits for its grace period, or is ready.
    Looks,
}

impl Wants {
    /// What a queue wants whose counted callbacks are these; `is_empty`: if all that was ever added
    /// has run, counted or not.
    ///
    /// ```
    /// use grace::batch::Wants;
    /// use grace::{Segments, Sequence};
    ///
    /// let mut segments = Segments::new(Sequence::after(0));
    /// assert_eq!(Wants::of(&segments, true), Wants::Nothing);
    /// assert_eq!(Wants::of(&segments, false), Wants::Company);
    /// segments.push(1);
    /// segments.accelerate(Sequence::after(0).snapshot());
    /// assert_eq!(Wants::of(&segments, false), Wants::Looks);
    /// ```
    pub fn of(segments: &Segments, is_empty: bool) -> Self {
        if segments.ready() != 0 || segments.awaited().is_some() {
            Self::Looks
        } else if is_empty {
            Self::Nothing
        } else {
            Self::Company
        }
    }
}

/// Whether a thread's open callbacks, so many of so many bytes, are a full batch, or an eighth of
/// the limit. (Those that wait for their grace period already do not count: else a thread behind
/// which many wait would ask for one with every few that it adds.)
///
/// ```
/// use grace::batch::{BATCH, is_full};
/// use grace::limit::Amount;
///
/// let limit = Amount { objects: 65_536, bytes: 16 << 20 };
/// assert!(!is_full(8_191, 0, BATCH, limit));
/// assert!(is_full(8_192, 0, BATCH, limit)); // an eighth of the limit
/// assert!(is_full(1, 2 << 20, BATCH, limit));
/// assert!(!is_full(1, 64, BATCH, limit));
/// ```
pub const fn is_full(open: u64, open_bytes: u64, batch: u64, limit: Amount) -> bool {
    let share = limit.objects / BATCH_SHARE;
    let batch = if share < batch { share } else { batch };
    let batch = if batch == 0 { 1 } else { batch };
    open >= batch || open != 0 && open_bytes >= limit.bytes / BATCH_SHARE
}

/// How much the grace period of a full batch is wanted, in a domain that is so near its limit.
pub const fn urgency(zone: Zone) -> Urgency {
    match zone {
        Zone::Free => Urgency::Normal,
        Zone::Expedite | Zone::Full => Urgency::Expedited,
    }
}

/// How many of `ready` callbacks are run in one go: `least` or, where thousands are ready, one in
/// 128 of them; never more than there are. `batch` is [`BATCH`], or less in a model.
///
/// ```
/// use grace::batch::{BATCH, in_one_go};
///
/// assert_eq!(in_one_go(10, 32, BATCH), 10);
/// assert_eq!(in_one_go(20_000, 32, BATCH), 32);
/// assert_eq!(in_one_go(128_000, 32, BATCH), 1_000);
/// ```
pub const fn in_one_go(ready: u64, least: u64, batch: u64) -> u64 {
    let many = if ready > 2 * batch { ready >> RUN_SHIFT } else { 0 };
    let many = if least > many { least } else { many };
    if many < ready { many } else { ready }
}

/// Whether a thread that runs so many callbacks in one go looks at the clock meanwhile, each
/// [`RUN_CHUNK`] of them.
pub const fn is_timed(claimed: u64) -> bool {
    claimed > RUN_UNTIMED
}

/// Whether a thread outside of any section that has just tended its queue, and run so many
/// callbacks, takes steps of the grace period, too.
/// (What the queue wants is asked for only where it matters: the library takes a lock for it.)
pub fn advances(ran: u64, wants: impl FnOnce() -> Wants) -> bool {
    ran == 0 && wants() == Wants::Looks
}
