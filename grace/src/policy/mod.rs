//! Policies: when to start, and when to look at the holdouts again.
//!
//! The machine knows *what* must happen in a grace period; a policy says how patient it is in
//! between. Policies are siblings behind the trait [`Policy`]; each is a small value that is
//! compared and hashed with the machine, so that the explorer can tell states apart.
//!
//! All that a policy knows is [`Urgency`]: the thread that asks for a grace period translates its
//! situation into it. A thread that waits is urgent; so is memory that is near its limit
//! ([`limit::zone`](crate::limit::zone)).

mod adaptive;
mod poll;
mod tick;
mod token;

pub use adaptive::{Adaptive, Budget};
pub use poll::Poll;
pub use tick::Tick;
pub use token::Token;

/// How much somebody wants the grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// In the background: a few callbacks, for which no thread waits. More may join them.
    Background,
    /// Someone waits, without hurry; or enough callbacks for a grace period of their own wait.
    Normal,
    /// Someone waits and would rather spend CPU time than wait longer; or the memory that
    /// waits is near its limit.
    Expedited,
}

/// Whether a grace period that is wanted starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// At once.
    Now,
    /// At the next tick.
    AtTick,
}

/// What the driver should do before it looks at the holdouts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Scan again without giving up the CPU.
    Again,
    /// Give up the CPU until a holdout has left its section: have the holdouts report.
    Sleep,
    /// Give up the CPU until the next tick.
    Tick,
}

/// When to start and when to scan again. Implementations are pure functions of their arguments and
/// parameters.
pub trait Policy: Clone + core::fmt::Debug + Eq + core::hash::Hash {
    /// A grace period is wanted this much, and none is in progress: does it start?
    fn begin(&self, urgency: Urgency) -> Begin;

    /// `looks` scans of this pass have found holdouts (at least 1): what now?
    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint;
}

/// Any of the policies over readers' words, where the choice is made at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyPolicy {
    /// From demand, within a budget.
    Adaptive(Adaptive),
    /// At once, and without pause.
    Poll(Poll),
    /// On the tick.
    Tick(Tick),
    /// As readers hand a token on.
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
