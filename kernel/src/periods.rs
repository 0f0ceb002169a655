//! What the machine's lock is for: when grace periods begin and end, by one engine or another.

use core::fmt::Debug;

use grace::steps::Intact;
use grace::{Cookie, Sequence};

use crate::engine::store::Fixed;
use crate::engine::tree::cpu::{At, Site};
use crate::engine::tree::{Options, Shared};
use crate::front::Asked;
use crate::percpu::PerCpu;

/// A CPU that runs a hook, as an engine's functions get it.
pub(crate) type Front<'a, 'k> = At<'a, Asked<'k>>;

impl Site for Asked<'_> {
    type Words = [PerCpu];
    type Host = Self;
    type Steps = Intact;
}

/// Tree RCU, as a [`Kernel`](crate::Kernel) has it if no other engine is named.
pub type TreeRcu<const CPUS: usize> = Shared<Fixed<CPUS>>;

/// An engine that a [`Kernel`](crate::Kernel) may have: [`TreeRcu`], or a
/// [`Driven`](crate::Driven) one. No other crate can implement it.
///
/// What a CPU does without the lock is the same for all: it notes a quiescent state in its own
/// part, and exchanges a word as it goes idle or comes back. Here is the rest. Each function is
/// called under the machine's lock, by a CPU with interrupts off.
pub trait GracePeriods<const CPUS: usize>: Debug + Sized + Send {
    /// Whether a CPU that needs a grace period takes the lock at each of its ticks. If not, only
    /// when the timer that was asked for has run out.
    #[doc(hidden)]
    const LOOKS_AT_EACH_TICK: bool;

    #[doc(hidden)]
    fn new(options: &Options, sequence: Sequence) -> Self;

    /// The same of the engine that there is, for one that is chosen at run time.
    #[doc(hidden)]
    fn looks_at_each_tick(&self) -> bool {
        Self::LOOKS_AT_EACH_TICK
    }

    /// The grace period in progress, or the last.
    #[doc(hidden)]
    fn sequence(&self) -> Sequence;

    /// Whether the grace period in progress waits for that CPU.
    #[doc(hidden)]
    fn is_holdout(&self, cpu: usize) -> bool;

    /// The CPU notices which grace period there is, reports, and asks for what it needs.
    #[doc(hidden)]
    fn advance(&mut self, at: &mut Front<'_, '_>);

    /// What the timer was asked to wait has gone by.
    #[doc(hidden)]
    fn timer(&mut self, at: &mut Front<'_, '_>);

    /// Looks at the holdouts.
    #[doc(hidden)]
    fn scan(&mut self, at: &mut Front<'_, '_>);

    /// Asks for a full grace period from here on, for a thread that waits.
    #[doc(hidden)]
    fn want(&mut self, at: &mut Front<'_, '_>) -> Cookie;

    /// The CPU has, or no longer has, far too many callbacks.
    #[doc(hidden)]
    fn note_overload(&mut self, at: &mut Front<'_, '_>);

    /// The CPU's callbacks are becoming too many.
    #[doc(hidden)]
    fn hurry(&mut self, at: &mut Front<'_, '_>);
}

/// Functions of the trait, each by the function of that name of what `$of!` calls `one`.
macro_rules! by_name {
    ($of:ident) => {
        fn want(&mut self, at: &mut Front<'_, '_>) -> Cookie {
            $of!(self, one => one.want(at))
        }

        by_name!($of: advance timer scan note_overload hurry);
    };
    ($of:ident: $($name:ident)*) => {$(
        fn $name(&mut self, at: &mut Front<'_, '_>) {
            $of!(self, one => one.$name(at));
        }
    )*};
}
pub(crate) use by_name;

macro_rules! itself {
    ($itself:expr, $one:ident => $what:expr) => {{
        let $one = $itself;
        $what
    }};
}

impl<const CPUS: usize> GracePeriods<CPUS> for TreeRcu<CPUS> {
    const LOOKS_AT_EACH_TICK: bool = false;

    fn new(options: &Options, sequence: Sequence) -> Self {
        Self::new(Fixed(CPUS), options, sequence)
    }

    fn sequence(&self) -> Sequence {
        self.sequence
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        self.nodes.is_holdout(cpu)
    }

    by_name!(itself);
}
