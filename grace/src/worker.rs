//! The decisions of the worker, the thread that runs callbacks which their own threads do not run:
//! when its next turn in a domain is, what it does there, and how long it leaves the domain's grace
//! periods alone afterwards ([`Budget`](crate::policy::Budget)).

use crate::policy::{AnyPolicy, Urgency};
use crate::segments::Segments;

/// What a domain needs from the worker, its callbacks aside; or with them: when the next turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// Nothing; with its callbacks: a turn when the open ones have waited for more to join them as
    /// long as the domain's tuning says.
    None,
    /// A turn a tick from now.
    AtTick,
    /// A turn this many nanoseconds from now.
    Within(u64),
    /// Another turn at once.
    AtOnce,
}

impl Attention {
    /// What the domain needs while a grace period is requested under this policy.
    pub const fn while_wanted(policy: &AnyPolicy) -> Self {
        match policy {
            // Either callbacks need it, for which the worker comes anyway; or the thread that waits
            // for it drives it.
            AnyPolicy::Adaptive(_) => Self::None,
            AnyPolicy::Poll(_) => Self::AtOnce,
            AnyPolicy::Tick(_) | AnyPolicy::Token(_) => Self::AtTick,
        }
    }
}

/// What one queue needs from the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wants {
    /// It is empty.
    Nothing,
    /// Callbacks are open: they may wait for more to share a grace period with.
    Company,
    /// Callbacks wait for their grace period, or are ready: the worker is to come at every tick.
    Looks,
}

impl Wants {
    /// What a queue needs whose counted callbacks are in `segments`; `is_empty`: whether all that
    /// was ever added has run, counted or not.
    ///
    /// ```
    /// use grace::worker::Wants;
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

/// When the worker's first turn comes in a domain that announces its first callbacks. If a grace
/// period is wanted already, they need not wait for more callbacks to share it with.
///
/// ```
/// use grace::worker::{Attention, first_turn};
///
/// assert_eq!(first_turn(Attention::None), Attention::None);
/// assert_eq!(first_turn(Attention::AtOnce), Attention::AtTick);
/// ```
pub fn first_turn(asked: Attention) -> Attention {
    asked.min(Attention::AtTick)
}

/// When the worker's next turn comes in a domain that needs `asked`, and whose queues need `wants`;
/// `hurries`: whether some thread hurries, or ready callbacks were left.
///
/// ```
/// use grace::worker::{Attention, Wants, next_turn};
///
/// assert_eq!(next_turn(Attention::None, Wants::Company, false), Attention::None);
/// assert_eq!(next_turn(Attention::None, Wants::Looks, false), Attention::AtTick);
/// assert_eq!(next_turn(Attention::AtOnce, Wants::Nothing, false), Attention::AtOnce);
/// assert_eq!(next_turn(Attention::AtTick, Wants::Looks, true), Attention::AtOnce);
/// ```
pub const fn next_turn(asked: Attention, wants: Wants, hurries: bool) -> Attention {
    match (asked, wants) {
        _ if hurries => Attention::AtOnce,
        (Attention::None, Wants::Looks) => Attention::AtTick,
        _ => asked,
    }
}

/// Whether the worker still has something to do in such a domain, so that it comes again.
pub const fn stays(asked: Attention, wants: Wants) -> bool {
    !matches!((asked, wants), (Attention::None, Wants::Nothing))
}

/// The urgency with which the worker closes all open callbacks in its turn, or `None` if it does
/// not close them. `hurried`: some thread hurries. `is_time`: they have waited long enough.
pub const fn closes(hurried: bool, is_time: bool) -> Option<Urgency> {
    if hurried {
        Some(Urgency::Normal)
    } else if is_time {
        Some(Urgency::Background)
    } else {
        None
    }
}

/// Goes of a few callbacks that the worker gives one queue before the next queue; fewer if the
/// worker's [turn](turn_is_over) ends before.
pub const RUNS_PER_TURN: usize = 64;

/// The length of the worker's turn in one domain, about, in units of `run_ns`: other domains wait
/// for their turns meanwhile.
const GOES_PER_TURN: u64 = 4;

/// Whether the worker's turn in a domain, with all of its queues, has ended: `taken_ns` is how long
/// it has run callbacks, `run_ns` the longest that one go should take. (Wall-clock time, not CPU
/// time: a callback that sleeps delays other domains as well.) It is asked after each go, so a turn
/// has at least one.
///
/// ```
/// use grace::batch::RUN_NS;
/// use grace::worker::turn_is_over;
///
/// assert!(!turn_is_over(RUN_NS, RUN_NS));
/// assert!(turn_is_over(4 * RUN_NS, RUN_NS));
/// assert!(turn_is_over(0, 0), "one go a turn");
/// ```
pub const fn turn_is_over(taken_ns: u64, run_ns: u64) -> bool {
    taken_ns >= run_ns.saturating_mul(GOES_PER_TURN)
}

/// Whether the worker takes steps of the grace period in its turn: not while the domain rests after
/// an expensive turn (`!rested`), unless some thread hurries, the grace period is expedited, or a
/// task waits. The last two are called only if they matter: the library takes a lock for each.
pub fn advances(
    rested: bool,
    hurried: bool,
    urgency: impl FnOnce() -> Urgency,
    task_waits: impl FnOnce() -> bool,
) -> bool {
    rested || hurried || urgency() == Urgency::Expedited || task_waits()
}
