//! An engine that a kernel chooses as it boots, such as by a word of its command line.
//!
//! **Invariant: the engine is the one that was chosen before the first CPU started, or Tree RCU,
//! and stays.** It is laid out when it is chosen; the memory is that of the largest.

use grace::{Cookie, Sequence};

use crate::driven::Driven;
use crate::engine::store::Fixed;
use crate::engine::tree::Options;
use crate::engine::{on_demand::OnDemand, poll, tick::Tick, token};
use crate::front::Kernel;
use crate::percpu::FIRST;
use crate::periods::{Front, GracePeriods, TreeRcu, by_name};
use crate::platform::Platform;

/// Any engine of this crate: one of [`NAMES`](Self::NAMES), by [`Kernel::choose`].
///
/// Whichever is chosen, or none, it has the memory of the largest, "poll-per-cpu", and is built on
/// the boot stack: about 20 KB for 64 CPUs, 276 KB for 256, 4 MB for 1,024; several times that in a
/// debug build. A kernel of many CPUs names its engine in its type.
///
/// Tree RCU takes the machine's lock on more of its ticks here, under the variant V2 if another was
/// asked for; the other engines are as they are by themselves.
#[derive(Debug)]
pub struct Any<const CPUS: usize>(Engines<CPUS>);

/// Why no engine was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotChosen {
    /// There is none of this name, be it too late or not.
    Unknown,
    /// One is chosen, or a CPU has started.
    TooLate,
}

/// The engines: their names, and for `each` what to do with whichever there is. `$d` is a dollar.
macro_rules! engines {
    ($d:tt $($name:literal: $variant:ident($engine:ty),)*) => {
        #[derive(Debug)]
        enum Engines<const CPUS: usize> {
            $($variant($engine),)*
        }

        impl<const CPUS: usize> Any<CPUS> {
            /// The names of the engines.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            fn named(name: &str, options: &Options, sequence: Sequence) -> Option<Self> {
                match name {
                    $($name => {
                        let new = <$engine as GracePeriods<CPUS>>::new(options, sequence);
                        Some(Self(Engines::$variant(new)))
                    })*
                    _ => None,
                }
            }
        }

        macro_rules! each {
            ($d any:expr, $d one:ident => $d what:expr) => {
                match $d any {
                    $(Any(Engines::$variant($d one)) => $d what,)*
                }
            };
        }
    };
}

engines! { $
    "tree": Tree(TreeRcu<CPUS>),
    "poll": Poll(Driven<poll::Global<Fixed<CPUS>>>),
    "poll-per-cpu": PollPerCpu(Driven<poll::PerCpu<Fixed<CPUS>>>),
    "tick": Tick(Driven<Tick<Fixed<CPUS>>>),
    "token": Token(Driven<token::Published<Fixed<CPUS>>>),
    "token-relay": TokenRelay(Driven<token::Relay<Fixed<CPUS>>>),
    "on-demand": OnDemand(Driven<OnDemand<Fixed<CPUS>>>),
}

impl<const CPUS: usize> GracePeriods<CPUS> for Any<CPUS> {
    const LOOKS_AT_EACH_TICK: bool = true;

    fn new(options: &Options, sequence: Sequence) -> Self {
        Self(Engines::Tree(GracePeriods::<CPUS>::new(options, sequence)))
    }

    fn looks_at_each_tick(&self) -> bool {
        each!(self, one => GracePeriods::<CPUS>::looks_at_each_tick(one))
    }

    fn sequence(&self) -> Sequence {
        each!(self, one => GracePeriods::<CPUS>::sequence(one))
    }

    fn is_holdout(&self, cpu: usize) -> bool {
        each!(self, one => GracePeriods::<CPUS>::is_holdout(one, cpu))
    }

    by_name!(each);
}

impl<P: Platform, const CPUS: usize> Kernel<P, CPUS, Any<CPUS>> {
    /// Chooses the engine: before the first [`cpu_starting`](Self::cpu_starting). It is laid out on
    /// the stack first; [`Any`] says how large it is.
    ///
    /// # Errors
    /// [`NotChosen`]. Nothing changes then, and the kernel may go on with the engine that it has.
    ///
    /// ```
    /// # fn boot<P: kernel::Platform>(rcu: &kernel::Kernel<P, 8, kernel::Any<8>>) {
    /// let chosen = rcu.choose("token-relay");
    /// # }
    /// ```
    pub fn choose(&self, name: &str) -> Result<(), NotChosen> {
        let _irq = self.platform.irq_off();
        let engine = Any::named(name, &self.plan.options, FIRST).ok_or(NotChosen::Unknown)?;
        if self.lay_out(engine) { Ok(()) } else { Err(NotChosen::TooLate) }
    }
}
