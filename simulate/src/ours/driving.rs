//! Grace periods: requests, the driver, and the threads that sleep behind it. The machine decides
//! what comes next; here it is carried out, and takes time.

use grace::driver::{Needed, Passing, TICK_NS, fence_needed};
use grace::handover::PATIENCE_NS;
use grace::policy::AnyPolicy;
use grace::worker::Attention;
use grace::{Action, Cookie, Event, Hint, Machine, Number, Start, Urgency, word};

use super::costs::ns;
use super::handover::{Away, Conduct, LooksOn};
use super::options::{Algorithm, Role};
use super::readers::{Announced, ReaderId};
use super::report::Spending;
use super::world::{Frame, Happening, Next, ThreadId, World};
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

/// Waiting for a grace period, from the request on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    urgency: Urgency,
    step: WaitStep,
}

#[derive(Clone, Copy, Debug)]
enum WaitStep {
    Asks,
    Requests,
    Waits(Cookie),
}

impl Wait {
    pub(super) const fn new(urgency: Urgency) -> Self {
        Self { urgency, step: WaitStep::Asks }
    }
}

/// Driving the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Until this is done; none: as far as is possible without waiting.
    until: Option<Cookie>,
    passing: Passing,
    /// Readers of the driver's own, which are quiescent.
    own: usize,
    /// Its number, and whether it took another one's place and has taken no step yet.
    term: u64,
    took_over: bool,
    doing: Doing,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    Begins,
    Fences,
    Announces(Number),
    Scans(Number),
    Marks,
    Sleeps,
    Naps,
    Completes,
}

impl Drive {
    /// A driver that does not wait; at a tick, if it is the worker.
    const fn in_passing(tick: bool, own: usize, term: u64) -> Self {
        let passing = Passing::new(tick);
        Self { until: None, passing, own, term, took_over: false, doing: Doing::Begins }
    }

    pub(super) const fn until(cookie: Cookie, own: usize, term: u64) -> Self {
        Self { until: Some(cookie), ..Self::in_passing(false, own, term) }
    }

    /// In the place of another one.
    pub(super) const fn taken_over(self) -> Self {
        Self { took_over: true, ..self }
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

    // ---- requests -----------------------------------------------------------------------------

    pub(super) fn wait_step(&mut self, frame: &mut Wait) -> Next {
        match frame.step {
            WaitStep::Asks => {
                frame.step = WaitStep::Requests;
                Next::Spend(self.options.costs.request_ns(), Spending::GracePeriods)
            }
            WaitStep::Requests => {
                let cookie = self.domain.machine.request(frame.urgency);
                frame.step = WaitStep::Waits(cookie);
                Next::Spend(0, Spending::GracePeriods)
            }
            WaitStep::Waits(cookie) => {
                if self.domain.machine.sequence().is_done(cookie) {
                    Next::Done
                } else {
                    Next::Call(Frame::LooksOn(LooksOn::new(cookie)))
                }
            }
        }
    }

    /// A driver that takes the steps that can be taken without waiting, if there are any.
    pub(super) fn advance(&mut self, id: ThreadId, tick: bool) -> Option<Frame> {
        if !self.domain.machine.is_wanted() {
            return None;
        }
        let takes_over = self.domain.driven;
        if takes_over && !self.supersede_in_passing() {
            return None;
        }
        let term = self.begin_term();
        let drive = Drive::in_passing(tick, self.own(id), term);
        Some(Frame::Drive(if takes_over { drive.taken_over() } else { drive }))
    }

    fn wake_followers(&mut self) {
        for follower in std::mem::take(&mut self.domain.followers) {
            self.wake_at_cost(follower);
        }
    }

    // ---- the driver ---------------------------------------------------------------------------

    fn observe(&mut self, event: Event) {
        let observed = self.domain.machine.observe(event);
        assert!(observed.is_ok(), "each action is reported by its own event: {observed:?}");
    }

    pub(super) fn drive_step(&mut self, id: ThreadId, frame: &mut Drive) -> Next {
        if frame.term != self.domain.conduct.term {
            return Next::Done; // another one has taken its place
        }
        self.domain.conduct.steps += 1;
        self.domain.conduct.away = Away::Works;
        match frame.doing {
            Doing::Begins => {}
            Doing::Fences => self.observe(Event::Fenced),
            Doing::Announces(number) => {
                let Announced { number: before, .. } = self.domain.announced;
                self.domain.announced = Announced { number, since: self.events.now(), before };
                self.observe(Event::Announced);
            }
            Doing::Scans(number) => {
                let holdouts = self.scan(number);
                frame.passing.scanned();
                self.observe(Event::Scanned { holdouts });
            }
            Doing::Marks => {
                if self.sleeps_for_holdouts(id) {
                    self.domain.conduct.away = Away::Sleeps;
                    frame.doing = Doing::Sleeps;
                    return Next::Sleep;
                }
                self.observe(Event::Woken);
            }
            Doing::Sleeps | Doing::Naps => self.observe(Event::Woken),
            Doing::Completes => {
                self.complete();
                self.observe(Event::Completed);
                self.wake_followers();
                let sequence = self.domain.machine.sequence();
                if frame.until.is_none_or(|cookie| sequence.is_done(cookie)) {
                    return self.leave();
                }
            }
        }
        self.drive_on(id, frame)
    }

    /// The driver leaves; a thread that waits for a later grace period may drive.
    fn leave(&mut self) -> Next {
        self.domain.driven = false;
        self.wake_followers();
        Next::Done
    }

    fn drive_on(&mut self, id: ThreadId, frame: &mut Drive) -> Next {
        let costs = &self.options.costs;
        loop {
            let took_over = std::mem::take(&mut frame.took_over);
            let taken_ns = match self.domain.machine.poll() {
                Action::Idle => return self.leave(),
                Action::Fence => {
                    if !took_over {
                        self.domain.began = self.events.now();
                    }
                    let readers = self.domain.registered.len();
                    let needed = fence_needed(readers, frame.own, self.domain.light);
                    self.domain.alone = needed.is_none();
                    frame.doing = Doing::Fences;
                    // The registry's lock, and a fence: a full one is as an atomic operation.
                    ns(costs.machine.lock)
                        + match needed {
                            None => {
                                self.observe(Event::Alone);
                                frame.doing = Doing::Begins;
                                ns(costs.machine.atomic)
                            }
                            Some(Needed::Heavy) => self.membarrier(id),
                            Some(Needed::Full) => ns(costs.machine.atomic),
                        }
                }
                Action::Announce(number) => {
                    frame.doing = Doing::Announces(number);
                    costs.announce_ns()
                }
                Action::Scan(number) => {
                    frame.doing = Doing::Scans(number);
                    self.scan_ns(number, frame)
                }
                // The driver before has waited; what for may have come.
                Action::Wait(_) if took_over && frame.until.is_some() => {
                    self.observe(Event::Woken);
                    continue;
                }
                Action::Wait(hint) => match self.wait_for_readers(id, frame, hint) {
                    Some(next) => return next,
                    None => continue,
                },
                Action::Complete(_) => {
                    frame.doing = Doing::Completes;
                    ns(costs.machine.atomic)
                }
            };
            return Next::Spend(ns(costs.machine.engine) + taken_ns, Spending::GracePeriods);
        }
    }

    /// The machine wants its driver to wait. None if that is over at once.
    fn wait_for_readers(&mut self, id: ThreadId, frame: &mut Drive, hint: Hint) -> Option<Next> {
        if frame.until.is_none() {
            if frame.passing.wait_has_ended(hint) {
                self.observe(Event::Woken);
                return None;
            }
            return Some(self.leave());
        }
        match hint {
            Hint::Again => {
                self.observe(Event::Woken);
                None
            }
            Hint::Sleep => {
                frame.doing = Doing::Marks;
                let holdouts = self.domain.holdouts.len();
                self.domain.holdouts.iter().for_each(|&at| self.readers[at].marked = true);
                self.domain.marks = holdouts;
                let ns = self.options.costs.mark_ns(holdouts as u64) + self.membarrier(id);
                Some(Next::Spend(ns, Spending::GracePeriods))
            }
            Hint::Tick => {
                self.domain.conduct.away = Away::Naps(TICK_NS);
                frame.doing = Doing::Naps;
                Some(Next::SleepFor(TICK_NS))
            }
        }
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
        }
        sleeps
    }

    /// What a scan takes: of all readers, or of the holdouts. Of a driver that spins several at
    /// once, as long as none of these can leave: the machine hears of each.
    fn scan_ns(&mut self, number: Number, frame: &mut Drive) -> Time {
        let now = self.events.now();
        let costs = &self.options.costs;
        if self.domain.pass != Some(number) {
            let written = self.look_at_all();
            let scan_ns = costs.scan_ns(self.domain.registered.len() as u64, written);
            self.domain.registry_until = now + scan_ns;
            return scan_ns;
        }
        let holdouts = self.domain.holdouts.len();
        let rescan_ns = costs.rescan_ns(holdouts as u64);
        if frame.until.is_none() {
            return rescan_ns;
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
                frame.doing = Doing::Begins; // the next step asks the machine
                return looks * rescan_ns;
            }
            self.observe(Event::Woken);
            looks += 1;
        }
        looks * rescan_ns
    }

    /// Counts the holdouts.
    fn scan(&mut self, number: Number) -> usize {
        self.counted.scans += 1;
        let now = self.events.now();
        let mut holdouts = std::mem::take(&mut self.domain.holdouts);
        if self.domain.pass != Some(number) {
            holdouts.clear();
            holdouts.extend_from_slice(&self.domain.registered);
            self.domain.pass = Some(number);
            #[cfg(test)]
            if self.skips_last_reader {
                holdouts.pop();
            }
        }
        holdouts.retain(|&reader| {
            self.readers[reader].advance(now);
            self.readers[reader].place.is_some() && self.is_holdout(reader)
        });
        self.domain.holdouts = holdouts;
        self.domain.holdouts.len()
    }

    fn complete(&mut self) {
        self.counted.grace_periods += 1;
        self.check_end(self.domain.began);
    }

    /// If that is to be checked: no reader is in a section that had begun before `began`.
    pub(super) fn check_end(&mut self, began: Time) {
        if !self.options.check {
            return;
        }
        let now = self.events.now();
        for at in 0..self.domain.registered.len() {
            let reader = self.domain.registered[at];
            self.readers[reader].advance(now);
            let is_inside = self.readers[reader].is_inside_since_before(began);
            self.counted.violations += u64::from(is_inside);
        }
    }
}
