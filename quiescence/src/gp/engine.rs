//! Which grace-period engine a domain has, and what it may cost.
//!
//! An engine is a detector of quiescent states with a policy; the policies are
//! [`grace::policy`]'s, the detectors are the scan of all readers' words and, for `token`, the
//! relay of the QSBR readers ([`crate::gp::relay`]).

use std::fmt;
use std::mem::discriminant;
use std::str::FromStr;

use grace::policy::{Adaptive, AnyPolicy, Budget, Poll, Tick, Token};

/// When the grace periods of a domain start, how its holdouts are found, and who pays for that.
///
/// | engine | starts | scans again | waiter's latency | costs |
/// |---|---|---|---|---|
/// | `Adaptive` | at once if a thread waits or a batch is full, else at the tick | as `Poll` if a thread waits, else as `Tick` | as `Poll` | as `Tick` when no thread waits |
/// | `Poll` | at once | without a pause; a waiting thread finally sleeps until the holdouts wake it | lowest | a whole CPU while grace periods are wanted, since the worker never sleeps then |
/// | `Tick` | at the next tick (every 10 ms) | at each tick | one or two ticks, more behind long sections | lowest |
/// | `Token` | at once | when the token comes round; at each tick | a quiescent state of each of 16 readers, one after the other, and a tick for each reader behind one that is offline | lowest, spread over the readers |
///
/// The ideas are those of Linux 2.5: rcu_poll, rcu_ltimer and rcu_sched (Arcangeli, Cao, McKenney,
/// Sarma, FREENIX 2003).
///
/// ```
/// use quiescence::tuning::Engine;
///
/// assert_eq!("tick".parse(), Ok(Engine::Tick));
/// assert_eq!(Engine::default(), Engine::Adaptive);
/// assert!("fast".parse::<Engine>().unwrap_err().to_string().contains("adaptive, poll, tick, token"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// The latency of rcu_poll when a thread waits, the overhead of rcu_ltimer when none does.
    #[default]
    Adaptive,
    /// Starts at once and scans without a pause, even for callbacks.
    Poll,
    /// Does everything at the tick; never spins, and readers wake no thread.
    Tick,
    /// QSBR readers pass on a token at their quiescent states, in chains of up to 16 readers; an
    /// updater scans only the ends of the chains. Readers that are not QSBR are scanned as under
    /// the other engines.
    Token,
}

/// The error for a name that no engine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEngine(String);

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Engine::ALL.map(Engine::name).join(", ");
        write!(f, "no engine is called {:?}; there are: {known}", self.0)
    }
}

impl std::error::Error for UnknownEngine {}

impl Engine {
    /// All engines, the default first.
    pub const ALL: [Self; 4] = [Self::Adaptive, Self::Poll, Self::Tick, Self::Token];

    /// The name, as [`FromStr`] takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adaptive => "adaptive",
            Self::Poll => "poll",
            Self::Tick => "tick",
            Self::Token => "token",
        }
    }

    /// The engine that has this policy.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) fn of_policy(policy: &AnyPolicy) -> Self {
        let is_it = |engine: &Self| discriminant(&engine.policy()) == discriminant(policy);
        Self::ALL.into_iter().find(is_it).expect("each policy is an engine's")
    }

    pub(crate) const fn policy(self) -> AnyPolicy {
        match self {
            Self::Adaptive => AnyPolicy::Adaptive(Adaptive::DEFAULT),
            Self::Poll => AnyPolicy::Poll(Poll::DEFAULT),
            Self::Tick => AnyPolicy::Tick(Tick),
            Self::Token => AnyPolicy::Token(Token::DEFAULT),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = UnknownEngine;

    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| UnknownEngine(name.to_owned()))
    }
}

/// How a domain is to work; fixed when it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: AnyPolicy,
    /// What the worker may spend on the domain's grace periods; `None`: no limit.
    pub(crate) budget: Option<Budget>,
    /// Whether its readers execute full fences even if the process has light ones.
    pub(crate) readers_fence: bool,
}

impl Settings {
    pub(crate) const DEFAULT: Self = Self::of(Engine::Adaptive, Budget::DEFAULT);

    pub(crate) const fn of(engine: Engine, budget: Budget) -> Self {
        let budget = match engine {
            Engine::Adaptive => Some(budget),
            Engine::Poll | Engine::Tick | Engine::Token => None,
        };
        Self { policy: engine.policy(), budget, readers_fence: false }
    }
}
