//! How a domain that is made at run time is to work: its engine, its limits, its fences.

use std::sync::Arc;

use grace::Start;
use grace::policy::Budget;

use crate::domain::domain::Domain;
use crate::domain::names::Private;
use crate::gp::engine::{Engine, Settings};
use crate::gp::observers::Observers;
use crate::gp::tuning::Tuning;
use crate::os::fence::Fences;
use crate::reclaim::domain_state::DomainState;

impl Domain<Private> {
    /// A new domain without readers, with the default engine.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Says how a new domain is to work.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl Default for Domain<Private> {
    fn default() -> Self {
        Self::new()
    }
}

/// How a domain is to work: made by [`Domain::builder`].
///
/// ```
/// use quiescence::{Domain, tuning::Engine};
///
/// let domain = Domain::builder().engine(Engine::Tick).build();
/// // Dropped a tick or two after others joined it:
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

    /// What the worker thread may spend on grace periods of this domain, in millionths of one
    /// CPU; 10,000 (1 %) unless said otherwise, taken as 1 to 1,000,000. Callbacks that it runs
    /// are not counted.
    ///
    /// Holds under [`Engine::Adaptive`], unless somebody waits expedited
    /// ([`Domain::synchronize_expedited`], [`Domain::barrier`]) or three quarters of what may wait
    /// do ([`Tuning`]). Each turn is rested for when it has ended: a share of one in a million
    /// means that callbacks wait for minutes, unless somebody waits. The other engines cost what
    /// they cost.
    pub const fn worker_budget_ppm(mut self, share_ppm: u32) -> Self {
        self.budget = Budget::from_ppm(share_ppm);
        self
    }

    /// What the domain's deferral may take; the default unless said otherwise.
    pub const fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = Some(tuning);
        self
    }

    /// Who executes the fences between readers and grace periods; [`Fences::Membarrier`] unless
    /// said otherwise.
    ///
    /// With [`Fences::Portable`] **readers of this domain execute full fences, and its grace
    /// periods no `membarrier(2)`**: one fence of the driver's own in its place, and another one if
    /// it sleeps. A section then takes two full fences (where it begins and where it ends: some
    /// 6 ns each), and the handle of a [`Reader`](crate::Reader) saves next to nothing; a grace
    /// period with a busy reader takes about as long as its section, and interrupts no CPU.
    ///
    /// That is the better choice where grace periods are waited for as often as sections begin, on
    /// machines where a membarrier is dear (1 us on some, 12 on others: `rcu costs`), or where no
    /// thread is to be interrupted by another one's updates. It is the worse one wherever values
    /// are read more often than somebody waits: `retire` and `call` wait for no grace period, and
    /// thousands of them share one membarrier.
    ///
    /// A process without membarrier has full fences in all its domains, whatever this says
    /// ([`fences`](crate::tuning::fences)). What is not of this domain's sections keeps its own
    /// fences: the worker that leaves a domain alone, restartable reads. [`Srcu`](crate::Srcu) has
    /// no such choice: its readers count by CPU in restartable sequences, which rest on the
    /// kernel's help.
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

    /// The name that reports of stalls and statistics know the domain by; without one, a number.
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

    /// The domain.
    pub fn build(self) -> Domain<Private> {
        let mut core = DomainState::new(
            self.start,
            Settings::of(self.engine, self.budget).with_fences(self.fences),
        );
        core.grace_periods.observers.number = Observers::next_number();
        core.grace_periods.observers.given_name = self.name;
        if let Some(tuning) = self.tuning {
            core.grace_periods.tuning.set(tuning);
        }
        Domain::of(Private(Arc::new(core)))
    }
}
