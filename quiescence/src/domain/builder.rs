//! The settings of a domain that is made at run time: its engine, its limits, its fences.

use std::sync::Arc;

use grace::Start;
use grace::policy::Budget;

use crate::domain::domain::Domain;
use crate::domain::impls::default_by;
use crate::domain::names::Private;
use crate::gp::engine::{Engine, Settings};
use crate::gp::observers::Observers;
use crate::gp::tuning::Tuning;
use crate::os::fence::Fences;
use crate::reclaim::domain_state::DomainState;

impl Domain<Private> {
    /// Creates a domain without readers, with the default engine.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Configures a new domain: its engine, limits, fences and name.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

default_by!(new, impl Default for Domain<Private>);

/// The configuration of a new domain: made by [`Domain::builder`].
///
/// ```
/// use quiescence::{Domain, tuning::Engine};
///
/// let domain = Domain::builder().engine(Engine::Tick).build();
/// // Values are dropped a tick or two after others have joined them:
/// domain.retire(Box::new(7)).expect("not in a section");
/// ```
#[derive(Clone, Debug)]
#[must_use = "build() makes the domain"]
pub struct Builder {
    engine: Engine,
    budget: Budget,
    start: Start,
    tuning: Option<Tuning>,
    fences: Fences,
    name: Option<String>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            engine: Engine::default(),
            budget: Budget::DEFAULT,
            start: Start::ZERO,
            tuning: None,
            fences: Fences::Membarrier,
            name: None,
        }
    }
}

impl Builder {
    /// The grace-period engine; [`Engine::Adaptive`] unless said otherwise.
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// The CPU time that the worker thread may spend on grace periods of this domain, in millionths
    /// of one CPU; 10,000 (1 %) by default, clamped to 1..=1,000,000. The callbacks that it runs
    /// are not counted.
    ///
    /// Applies under [`Engine::Adaptive`], unless a thread waits for an expedited grace period
    /// ([`Domain::synchronize_expedited`], [`Domain::barrier`]) or the domain is at three quarters
    /// of its limit ([`Tuning`]). The worker pauses after each turn until it is back within the
    /// budget: at a budget of one millionth callbacks wait for minutes, unless a thread waits for
    /// them. The other engines ignore the budget.
    pub const fn worker_budget_ppm(mut self, share_ppm: u32) -> Self {
        self.budget = Budget::from_ppm(share_ppm);
        self
    }

    /// The limits of the domain's deferral; the default [`Tuning`] if not set.
    pub const fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = Some(tuning);
        self
    }

    /// Who executes the fences between readers and grace periods; [`Fences::Membarrier`] by
    /// default.
    ///
    /// With [`Fences::Portable`] **readers of this domain execute full fences, and its grace
    /// periods execute no `membarrier(2)`**. The driver executes one fence of its own instead, and
    /// another one if it sleeps. A section then takes two full fences of some 6 ns each, one at its
    /// beginning and one at its end, and a [`Reader`](crate::Reader) handle saves next to nothing.
    /// A grace period with a busy reader takes about as long as that reader's section, and
    /// interrupts no CPU.
    ///
    /// Choose it if threads wait for grace periods as often as sections begin, on machines with an
    /// expensive membarrier (1 µs on some, 9 µs on others: run `rcu costs`), or if no thread may
    /// be interrupted by another one's updates. It is the worse choice if values are read more
    /// often than threads wait: `retire` and `call` wait for no grace period, and thousands of them
    /// share one membarrier.
    ///
    /// A process without membarrier has full fences in all its domains, whatever is set here
    /// ([`fences`](crate::tuning::fences)). Fences outside of this domain's sections stay as they
    /// are: those of the worker when it leaves a domain alone, and of restartable reads.
    /// [`Srcu`](crate::Srcu) has no such choice: its readers count per CPU in restartable
    /// sequences, which need the kernel's help.
    ///
    /// ```
    /// use quiescence::{Domain, Rcu, tuning::Fences};
    ///
    /// let domain = Domain::builder().fences(Fences::Portable).build();
    /// let route = Rcu::new_in("north", domain.clone());
    /// assert_eq!(*route.load(&domain.read()), "north");
    /// route.store("south");
    /// domain.synchronize();
    /// assert_eq!(domain.statistics().heavy_fences, 0);
    /// ```
    ///
    /// Source: the generic flavour of liburcu without `sys_membarrier` (Desnoyers et al., 2012).
    pub const fn fences(mut self, fences: Fences) -> Self {
        self.fences = fences;
        self
    }

    /// The name of the domain in stall reports and statistics; a number by default.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Has the domain's counters begin at `start`: tests begin right before they wrap.
    #[doc(hidden)]
    pub const fn starting_at(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Builds the domain.
    pub fn build(self) -> Domain<Private> {
        let mut settings = Settings::of(self.engine, self.budget);
        settings.readers_fence = self.fences == Fences::Portable;
        let mut core = DomainState::new(self.start, settings);
        core.grace_periods.observers.number = Observers::next_number();
        core.grace_periods.observers.given_name = self.name;
        if let Some(tuning) = self.tuning {
            core.grace_periods.tuning.set(tuning);
        }
        Domain::of(Private(Arc::new(core)))
    }
}
