//! What the worker decides: the thread that sees to callbacks where their own threads do not. When
//! its next turn in a domain comes, what it does there, and how long it leaves the domain's grace
//! periods alone afterwards ([`Budget`](crate::policy::Budget)).

use crate::batch::Wants;
use crate::policy::{AnyPolicy, Urgency};

/// What a domain wants of the worker, callbacks aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attention {
    /// Nothing.
    None,
    /// A look at the next tick.
    AtTick,
    /// A look so many nanoseconds from now.
    Within(u64),
    /// Another look without pause.
    AtOnce,
}

impl Attention {
    /// What the worker is to do while a grace period is wanted under this policy.
    pub const fn while_wanted(policy: &AnyPolicy) -> Self {
        match policy {
            // Callbacks ask for it, and they are looked after anyway; or the thread that waits sees
            // to it.
            AnyPolicy::Adaptive(_) => Self::None,
            AnyPolicy::Poll(_) => Self::AtOnce,
            AnyPolicy::Tick(_) | AnyPolicy::Token(_) => Self::AtTick,
        }
    }
}

/// When the worker's next turn in a domain comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextTurn {
    /// At once.
    Now,
    /// So many nanoseconds from now.
    Within(u64),
    /// A tick from now.
    AtTick,
    /// When callbacks have waited for company long enough.
    AtClose,
}

/// When the worker's first turn comes in a domain that announces its first callbacks: where a grace
/// period is wanted already they need not wait for company.
///
/// ```
/// use grace::worker::{Attention, NextTurn, first_turn};
///
/// assert_eq!(first_turn(Attention::None), NextTurn::AtClose);
/// assert_eq!(first_turn(Attention::AtOnce), NextTurn::AtTick);
/// ```
pub const fn first_turn(asked: Attention) -> NextTurn {
    match asked {
        Attention::None => NextTurn::AtClose,
        _ => NextTurn::AtTick,
    }
}

/// When the worker's next turn comes in a domain that wants this, whose queues want that;
/// `hurries` if some thread hurries, or callbacks were left ready.
///
/// ```
/// use grace::batch::Wants;
/// use grace::worker::{Attention, NextTurn, next_turn};
///
/// assert_eq!(next_turn(Attention::None, Wants::Company, false), NextTurn::AtClose);
/// assert_eq!(next_turn(Attention::None, Wants::Looks, false), NextTurn::AtTick);
/// assert_eq!(next_turn(Attention::AtOnce, Wants::Nothing, false), NextTurn::Now);
/// assert_eq!(next_turn(Attention::AtTick, Wants::Looks, true), NextTurn::Now);
/// ```
pub const fn next_turn(asked: Attention, wants: Wants, hurries: bool) -> NextTurn {
    match (asked, wants) {
        (Attention::AtOnce, _) => NextTurn::Now,
        _ if hurries => NextTurn::Now,
        (Attention::Within(ns), _) => NextTurn::Within(ns),
        (Attention::AtTick, _) | (_, Wants::Looks) => NextTurn::AtTick,
        _ => NextTurn::AtClose,
    }
}

/// Whether the worker still has something to do in such a domain, and is to come by again.
pub const fn stays(asked: Attention, wants: Wants) -> bool {
    !matches!((asked, wants), (Attention::None, Wants::Nothing))
}

/// What the worker closes in its turn: all that is open, with this urgency, if some thread hurries
/// or it has waited for company long enough.
pub const fn closes(hurried: bool, is_time: bool) -> Option<Urgency> {
    if hurried {
        Some(Urgency::Normal)
    } else if is_time {
        Some(Urgency::Background)
    } else {
        None
    }
}

/// How many times the time of one go a turn of the worker in one domain takes, about: other domains
/// wait for their turns meanwhile.
const GOES_PER_TURN: u64 = 4;

/// Whether the worker's turn in a domain is over, with all of its queues, that has run callbacks
/// for so long by the clock, where one go takes `run_ns`. (By the clock, and not by what it has had
/// of a CPU: a callback that sleeps holds other domains up as well.) It is asked after each go, so
/// a turn has one at least.
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
/// a turn that was dear, unless some thread hurries, wants it expedited, or is a task that waits.
/// The last two are asked for only where it matters: the library takes a lock for each.
pub fn advances(
    rested: bool,
    hurried: bool,
    urgency: impl FnOnce() -> Urgency,
    task_waits: impl FnOnce() -> bool,
) -> bool {
    rested || hurried || urgency() == Urgency::Expedited || task_waits()
}
