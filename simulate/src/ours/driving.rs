//! Grace periods: requests, the driver, and the threads that sleep behind it. The machine decides
//! what comes next; here it is carried out, and takes time.

use grace::driver::{Needed, Passing, TICK_NS, fence_needed};
use grace::handover::PATIENCE_NS;
use grace::policy::AnyPolicy;
use grace::worker::Attention;
use grace::{Action, Cookie, Event, Hint, Machine, Number, Start, Urgency, word};

use super::costs::ns;
use super::handover::{Away, Conduct};
use super::options::{Algorithm, Role};
use super::readers::{Announced, ReaderId};
use super::report::Spending;
use super::world::{Happening, Me, ThreadId, World};
use crate::events::Time;

/// Looks of a driver that spins which are taken at once, while no holdout can leave.
const LOOKS_AT_ONCE: Time = 64;

/// The machine, its readers, and who drives it.
#[derive(Clone, Debug)]
pub(super) struct Domain {
    pub(super) machine: Machine<AnyPolicy>,
    pub(super) while_wanted: Attention,
    pub(super) driven: bool,
    /// Threads that sleep until a grace period has ended, or the driver has left.
    pub(super) followers: Vec<ThreadId>,
    pub(super) conduct: Conduct,
    pub(super) registered: Vec<ReaderId>,
    /// How many of them have light fences.
    light: usize,
    pub(super) announced: Announced,
    /// The number of the pass that has been scanned, and whom it found.
    pass: Option<Number>,
    pub(super) holdouts: Vec<ReaderId>,
    /// The driver that sleeps, and for how many readers.
    pub(super) sleeper: Option<ThreadId>,
    pub(super) marks: usize,
    /// When the grace period in progress began.
    began: Time,
    /// Whether the one that began last found no other reader.
    pub(super) alone: bool,
    /// Until when the registry is locked.
    pub(super) registry_until: Time,
}

impl Domain {
    pub(super) fn new(algorithm: Algorithm) -> Self {
        let policy = match algorithm {
            Algorithm::Library { policy, .. } => policy,
            // Its machine is another one; this one is never asked.
            Algorithm::Liburcu => AnyPolicy::Adaptive(grace::policy::Adaptive::DEFAULT),
        };
        let number = Start::ZERO.number;
        Self {
            machine: Machine::new(policy, Start::ZERO),
            while_wanted: Attention::while_wanted(&policy),
            driven: false,
            followers: Vec::new(),
            conduct: Conduct::new(),
            registered: Vec::new(),
            light: 0,
            announced: Announced { number, since: 0, before: number },
            pass: None,
            holdouts: Vec::new(),
            sleeper: None,
            marks: 0,
            began: 0,
            alone: false,
            registry_until: 0,
        }
    }
}

impl Role {
    /// Whether its reader is registered from the beginning.
    pub(super) const fn is_registered(&self) -> bool {
        !matches!(self, Self::Comes { .. })
    }
}

impl World<'_> {
    // ---- readers ------------------------------------------------------------------------------

    pub(super) fn register(&mut self, reader: ReaderId) {
        self.readers[reader].place = Some(self.domain.registered.len());
        self.domain.registered.push(reader);
        self.domain.light += usize::from(!self.readers[reader].is_qsbr());
    }

    pub(super) fn unregister(&mut self, reader: ReaderId) {
        let Some(place) = self.readers[reader].place.take() else { return };
        self.domain.registered.swap_remove(place);
        if let Some(&moved) = self.domain.registered.get(place) {
            self.readers[moved].place = Some(place);
        }
        self.domain.light -= usize::from(!self.readers[reader].is_qsbr());
        self.note_leave(reader);
    }

    fn is_holdout(&self, reader: ReaderId) -> bool {
        word::is_holdout(
            self.readers[reader].word(&self.domain.announced),
            self.domain.announced.number,
        )
    }

    /// A marked reader that runs: when it leaves its section there is an event.
    pub(super) fn expect_leave(&mut self, id: ReaderId) {
        let reader = &mut self.readers[id];
        if reader.marked
            && let Some(left) = reader.leaves_in()
        {
            reader.generation += 1;
            let generation = reader.generation;
            self.events.after(left, Happening::Leaves { reader: id, generation });
        }
    }

    pub(super) fn leaves(&mut self, id: ReaderId, generation: u64) {
        if self.readers[id].generation != generation {
            return;
        }
        let now = self.events.now();
        self.readers[id].advance(now);
        self.note_leave(id);
        self.expect_leave(id);
    }

    /// Takes the mark of a reader away that is a holdout no more; the last one wakes the driver.
    pub(super) fn note_leave(&mut self, id: ReaderId) {
        if !self.readers[id].marked || self.holds_up(id) {
            return;
        }
        self.readers[id].marked = false;
        self.domain.marks -= 1;
        if self.domain.marks == 0
            && let Some(sleeper) = self.domain.sleeper.take()
        {
            self.wake(sleeper);
        }
    }

    fn holds_up(&self, id: ReaderId) -> bool {
        match self.options.algorithm {
            Algorithm::Library { .. } => self.readers[id].place.is_some() && self.is_holdout(id),
            Algorithm::Liburcu => self.is_waited_for(id),
        }
    }

    /// How many of the readers are the thread's own.
    pub(super) fn own(&self, id: ThreadId) -> usize {
        let registered = |reader: &ReaderId| self.readers[*reader].place.is_some();
        usize::from(self.threads[id].reader.filter(registered).is_some())
    }

    // ---- the driver ---------------------------------------------------------------------------

    fn wake_followers(&mut self) {
        for follower in std::mem::take(&mut self.domain.followers) {
            self.wake_at_cost(follower);
        }
    }

    fn observe(&mut self, event: Event) {
        let observed = self.domain.machine.observe(event);
        assert!(observed.is_ok(), "each action is reported by its own event: {observed:?}");
    }

    /// The driver of this term takes a step. False if another thread has taken its place.
    fn goes_on(&mut self, term: u64) -> bool {
        let goes_on = term == self.domain.conduct.term;
        if goes_on {
            self.domain.conduct.steps += 1;
            self.domain.conduct.away = Away::Works;
        }
        goes_on
    }

    /// The driver leaves; a thread that waits for a later grace period may drive.
    fn leave(&mut self) {
        self.domain.driven = false;
        self.wake_followers();
    }

    /// A grace period begins, which a driver may take over. What its fence takes: the registry's
    /// lock, and a fence: a full one is as an atomic operation.
    fn fence(&mut self, id: ThreadId, own: usize, took_over: bool) -> Time {
        if !took_over {
            self.domain.began = self.events.now();
        }
        let needed = fence_needed(self.domain.registered.len(), own, self.domain.light);
        self.domain.alone = needed.is_none();
        if self.domain.alone {
            self.observe(Event::Alone);
        }
        let costs = &self.options.costs;
        ns(costs.machine.lock)
            + match needed {
                Some(Needed::Heavy) => self.membarrier(id),
                None | Some(Needed::Full) => ns(costs.machine.atomic),
            }
    }

    fn announces(&mut self, number: Number) {
        let Announced { number: before, .. } = self.domain.announced;
        self.domain.announced = Announced { number, since: self.events.now(), before };
        self.observe(Event::Announced);
    }

    /// Marks the holdouts. What that takes.
    fn mark(&mut self, id: ThreadId) -> Time {
        let holdouts = self.domain.holdouts.len();
        self.domain.holdouts.iter().for_each(|&at| self.readers[at].marked = true);
        self.domain.marks = holdouts;
        self.options.costs.mark_ns(holdouts as u64) + self.membarrier(id)
    }

    /// After the fence: looks at the marked readers a second time. Returns whether some are left.
    fn sleeps_for_holdouts(&mut self, id: ThreadId) -> bool {
        let now = self.events.now();
        for at in 0..self.domain.holdouts.len() {
            let reader = self.domain.holdouts[at];
            self.readers[reader].advance(now);
            self.note_leave(reader);
            self.expect_leave(reader);
        }
        let sleeps = self.domain.marks != 0;
        if sleeps {
            self.domain.sleeper = Some(id);
            self.counted.driver_sleeps += 1;
            self.domain.conduct.away = Away::Sleeps;
        }
        sleeps
    }

    /// What a scan takes: of all readers, or of the holdouts. Of a driver that spins (`spins`)
    /// several at once, as long as none of these can leave: the machine hears of each. Also
    /// returns whether a scan is left to be made: not if the machine wants no other one now.
    fn scan_ns(&mut self, number: Number, spins: bool) -> (Time, bool) {
        let now = self.events.now();
        let costs = &self.options.costs;
        if self.domain.pass != Some(number) {
            let written = self.look_at_all();
            let scan_ns = costs.scan_ns(self.domain.registered.len() as u64, written);
            self.domain.registry_until = now + scan_ns;
            return (scan_ns, true);
        }
        let holdouts = self.domain.holdouts.len();
        let rescan_ns = costs.rescan_ns(holdouts as u64);
        if !spins {
            return (rescan_ns, true);
        }
        // Less than those who look on have patience: each look is progress.
        let mut in_vain = LOOKS_AT_ONCE.min(PATIENCE_NS / 2 / rescan_ns);
        for at in 0..holdouts {
            let reader = self.domain.holdouts[at];
            self.readers[reader].advance(now);
            let leaves_in = match self.holds_up(reader) {
                true => self.readers[reader].leaves_in().unwrap_or(Time::MAX),
                false => 0,
            };
            in_vain = in_vain.min(leaves_in / rescan_ns);
        }
        let mut looks = 1;
        while looks <= in_vain {
            self.observe(Event::Scanned { holdouts });
            if self.domain.machine.poll() != Action::Wait(Hint::Again) {
                return (looks * rescan_ns, false);
            }
            self.observe(Event::Woken);
            looks += 1;
        }
        (looks * rescan_ns, true)
    }

    fn scan(&mut self, number: Number) {
        self.counted.scans += 1;
        let now = self.events.now();
        let mut holdouts = std::mem::take(&mut self.domain.holdouts);
        if self.domain.pass != Some(number) {
            holdouts.clear();
            holdouts.extend_from_slice(&self.domain.registered);
            self.domain.pass = Some(number);
        }
        holdouts.retain(|&reader| {
            self.readers[reader].advance(now);
            self.readers[reader].place.is_some() && self.is_holdout(reader)
        });
        self.domain.holdouts = holdouts;
        self.observe(Event::Scanned { holdouts: self.domain.holdouts.len() });
    }

    fn complete(&mut self) {
        self.counted.grace_periods += 1;
        self.check_end(self.domain.began);
        self.observe(Event::Completed);
        self.wake_followers();
    }

    /// If that is to be checked: no reader is in a section that had begun before `began`.
    pub(super) fn check_end(&mut self, began: Time) {
        if !self.options.check {
            return;
        }
        let now = self.events.now();
        for reader in self.readers.iter_mut().filter(|reader| reader.place.is_some()) {
            reader.advance(now);
            self.counted.violations += u64::from(reader.is_inside_since_before(began));
        }
    }
}

pub(super) const GP: Spending = Spending::GracePeriods;

impl Me<'_, '_> {
    /// Waits for a grace period, from the request on.
    pub(super) async fn waits_in_library(self, urgency: Urgency) {
        self.spend(self.costs().request_ns(), GP).await;
        let cookie = self.world().domain.machine.request(urgency);
        self.look_on(cookie).await;
    }

    /// Takes the steps that can be taken without waiting; `tick`: it is the worker. Returns
    /// whether there were any.
    pub(super) async fn advance(self, tick: bool) -> bool {
        let takes_over = {
            let mut world = self.world();
            let takes_over = world.domain.driven;
            let is_wanted = world.domain.machine.is_wanted();
            if !is_wanted || takes_over && !world.supersede_in_passing() {
                return false;
            }
            takes_over
        };
        self.drive(None, tick, takes_over).await;
        true
    }

    /// Drives the machine: until the grace period of this cookie has ended, or, without one, as
    /// far as is possible without waiting. `takes_over`: in the place of another driver.
    pub(super) async fn drive(self, until: Option<Cookie>, tick: bool, mut takes_over: bool) {
        let mut passing = Passing::new(tick);
        // Readers of the driver's own, which are quiescent; and its number.
        let (own, term) = {
            let mut world = self.world();
            (world.own(self.id), world.begin_term())
        };
        self.world().goes_on(term);
        loop {
            let took_over = std::mem::take(&mut takes_over);
            let action = self.world().domain.machine.poll();
            match action {
                Action::Idle => return self.world().leave(),
                Action::Fence => {
                    let ns = self.world().fence(self.id, own, took_over);
                    if !self.takes_step(term, ns).await {
                        return;
                    }
                    let mut world = self.world();
                    if !world.domain.alone {
                        world.observe(Event::Fenced);
                    }
                }
                Action::Announce(number) => {
                    if !self.takes_step(term, self.costs().announce_ns()).await {
                        return;
                    }
                    self.world().announces(number);
                }
                Action::Scan(number) => {
                    let (ns, is_left) = self.world().scan_ns(number, until.is_some());
                    if !self.takes_step(term, ns).await {
                        return;
                    }
                    if is_left {
                        passing.scanned();
                        self.world().scan(number);
                    }
                }
                // The driver before has waited; what for may have come.
                Action::Wait(_) if took_over && until.is_some() => {
                    self.world().observe(Event::Woken);
                }
                Action::Wait(hint) if until.is_none() => {
                    if !passing.wait_has_ended(hint) {
                        return self.world().leave();
                    }
                    self.world().observe(Event::Woken);
                }
                Action::Wait(hint) => {
                    if !self.waits_for_readers(term, hint).await {
                        return;
                    }
                    self.world().observe(Event::Woken);
                }
                Action::Complete(_) => {
                    if !self.takes_step(term, ns(self.costs().machine.atomic)).await {
                        return;
                    }
                    let mut world = self.world();
                    world.complete();
                    let sequence = world.domain.machine.sequence();
                    if until.is_none_or(|cookie| sequence.is_done(cookie)) {
                        return world.leave();
                    }
                }
            }
        }
    }

    /// The driver of this term takes a step, which takes so long. False if another thread has
    /// taken its place meanwhile.
    async fn takes_step(self, term: u64, taken_ns: Time) -> bool {
        self.spend(ns(self.costs().machine.engine) + taken_ns, GP).await;
        self.world().goes_on(term)
    }

    /// The machine wants its driver to wait. False if another thread has taken its place
    /// meanwhile.
    async fn waits_for_readers(self, term: u64, hint: Hint) -> bool {
        match hint {
            Hint::Again => return true,
            Hint::Sleep => {
                let ns = self.world().mark(self.id);
                self.spend(ns, GP).await;
                let goes_on = self.world().goes_on(term);
                if !goes_on || !self.world().sleeps_for_holdouts(self.id) {
                    return goes_on;
                }
                self.sleep().await;
            }
            Hint::Tick => {
                self.world().domain.conduct.away = Away::Naps(TICK_NS);
                self.sleep_for(TICK_NS).await;
            }
        }
        self.world().goes_on(term)
    }
}
