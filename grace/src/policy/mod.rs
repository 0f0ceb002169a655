//! Policies: when to start, and when to scan the holdouts again.
//!
//! The machine knows *what* must happen in a grace period; a policy says how long to wait in
//! between. Policies are siblings behind the trait [`Policy`]; each is a small value that is
//! compared and hashed with the machine, so that the explorer can tell states apart.
//!
//! A policy knows only the [`Urgency`], which the thread that asks for a grace period derives from
//! its situation: a thread that waits is urgent, and so is memory near its limit
//! ([`limit::zone`](crate::limit::zone)).
//!
//! # Scans in vain
//! A driver that scans keeps a reader that shares its CPU from leaving; it cannot know where
//! readers run. So the machine spares it scans if those of the last passes have all led to a sleep:
//! the policy is asked as if it had made them.

mod adaptive;
mod looks;
mod poll;
mod tick;
mod token;

pub use adaptive::{Adaptive, Budget};
pub(crate) use looks::Looks;
pub use poll::Poll;
pub use tick::Tick;
pub use token::Token;

/// How urgently a grace period is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// In the background: a few callbacks, for which no thread waits. More may join them.
    Background,
    /// A thread waits, in no hurry; or enough callbacks for a grace period of their own wait.
    Normal,
    /// A thread waits and would rather spend CPU time than wait longer; or the memory that waits is
    /// near its limit.
    Expedited,
}

/// When a grace period that is wanted starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// At once.
    Now,
    /// At the next tick.
    AtTick,
}

/// What the driver should do before it scans the holdouts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Scan again without giving up the CPU.
    Again,
    /// Give up the CPU until holdouts report that they have left their sections.
    Sleep,
    /// Give up the CPU until the next tick.
    Tick,
}

/// When to start and when to scan again. Implementations are pure functions of their arguments and
/// parameters.
pub trait Policy: Clone + core::fmt::Debug + Eq + core::hash::Hash {
    /// A grace period is wanted, and none is in progress: when does it start?
    fn begin(&self, urgency: Urgency) -> Begin;

    /// `looks` scans of this pass (at least 1) have found holdouts, or were
    /// [spared](self#scans-in-vain): what should the driver do next?
    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint;
}

/// A policy that is chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyPolicy {
    /// By demand, within a budget.
    Adaptive(Adaptive),
    /// At once, and without pause.
    Poll(Poll),
    /// At the tick.
    Tick(Tick),
    /// As readers pass a token on.
    Token(Token),
}

impl Policy for AnyPolicy {
    fn begin(&self, urgency: Urgency) -> Begin {
        match self {
            Self::Adaptive(policy) => policy.begin(urgency),
            Self::Poll(policy) => policy.begin(urgency),
            Self::Tick(policy) => policy.begin(urgency),
            Self::Token(policy) => policy.begin(urgency),
        }
    }

    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint {
        match self {
            Self::Adaptive(policy) => policy.look_again(looks, urgency),
            Self::Poll(policy) => policy.look_again(looks, urgency),
            Self::Tick(policy) => policy.look_again(looks, urgency),
            Self::Token(policy) => policy.look_again(looks, urgency),
        }
    }
}
