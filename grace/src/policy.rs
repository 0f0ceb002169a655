//! Policies: when to look at the hold-outs again.
//!
//! The machine knows *what* must happen in a grace period; a policy says how patient it is in
//! between. Policies are siblings behind the trait [`Policy`]; each is a small value that is
//! compared and hashed with the machine, so that the explorer can tell states apart.

/// How much somebody wants the grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// In the background: callbacks, which nobody waits for.
    Background,
    /// Someone waits, without hurry.
    Normal,
    /// Someone waits and would rather spend processor time than wait longer.
    Expedited,
}

/// What the driver should do before it looks at the hold-outs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Look again without giving up the processor.
    Again,
    /// Give up the processor until a hold-out has left its section.
    Sleep,
}

/// When to look again. Implementations are pure functions of their arguments and parameters.
pub trait Policy: Clone + core::fmt::Debug + Eq + core::hash::Hash {
    /// `looks` scans of this grace period have found hold-outs (at least 1): what now?
    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint;
}

/// The policy of the engine `poll`: start at once, look again without pause for a few looks, then
/// have the hold-outs report.
///
/// After rcu_poll (Arcangeli, Cao, McKenney, Sarma, FREENIX 2003), which forces the hold-outs to
/// reschedule and polls until they have. User space cannot force a thread, so after
/// `looks_max` looks the waiter sleeps and the last hold-out wakes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poll {
    /// Looks before sleeping when nobody is in a hurry.
    pub looks_max: u32,
    /// Looks before sleeping when someone is.
    pub looks_max_expedited: u32,
}

impl Poll {
    /// A few microseconds of looking: longer than the common section, shorter than two context
    /// switches, which is what sleeping would cost.
    pub const DEFAULT: Self = Self { looks_max: 200, looks_max_expedited: 2_000 };
}

impl Default for Poll {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Policy for Poll {
    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint {
        let looks_max = match urgency {
            Urgency::Background | Urgency::Normal => self.looks_max,
            Urgency::Expedited => self.looks_max_expedited,
        };
        if looks < looks_max { Hint::Again } else { Hint::Sleep }
    }
}
