//! What the machine's lock is for: the combining tree, and when grace periods begin and end.
//!
//! Every function here is called with the lock held, by a CPU with interrupts off ([`At`]). What a
//! grace period is ordered with goes through that lock, but for extended quiescent states:
//! [`cpu`](super::cpu).

use grace::steps::Steps;
use grace::{Cookie, Sequence};

use super::cpu::{At, Site};
use super::nodes::Nodes;
use super::{FORGET, FULL, OWN, Options, REMEMBER, SCAN_AGAIN, SIBLINGS, WAKE};
use crate::engine::mask::Mask;
use crate::engine::store::Store;
use crate::engine::{Access, Host, Line};
use crate::sync::{Ordering, fence};

/// What all CPUs share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shared<A: Store> {
    pub(crate) sequence: Sequence,
    pub(crate) nodes: Nodes<A>,
    /// CPUs that have callbacks, and may have no tick that finds them ready.
    pub(super) sleepers: Mask<A>,
    /// The grace period that each CPU has noticed.
    pub(super) noticed: A::Of<Sequence>,
    /// Time since each CPU was interrupted last ([`Variant::Today`](super::Variant::Today)).
    pub(super) since_kick_jiffies: A::Of<u32>,
    /// How many CPUs have too many callbacks.
    pub(super) overloaded: usize,
    /// The age of the grace period in progress, as far as the timer has shown it.
    pub(super) age_jiffies: u32,
    /// What the timer was last asked to wait.
    pub(super) asked_jiffies: u32,
    /// Until a holdout of a very old grace period is interrupted next.
    pub(super) beat_in_jiffies: u32,
    /// The grace period in progress has been scanned.
    pub(super) has_snapshot: bool,
}

impl<A: Store> Shared<A> {
    pub(crate) fn new(store: A, options: &Options, sequence: Sequence) -> Self {
        let cpus = store.cpus();
        Self {
            sequence,
            nodes: Nodes::new(store, options.leaf_fanout, options.fanout, sequence),
            sleepers: Mask::new(store),
            noticed: store.of(cpus, sequence),
            since_kick_jiffies: store.of(cpus, u32::MAX),
            overloaded: 0,
            age_jiffies: 0,
            asked_jiffies: 0,
            beat_in_jiffies: 0,
            has_snapshot: false,
        }
    }

    /// The line in which `cpu` finds which grace period there is.
    pub(super) fn line_of(&self, cpu: usize) -> Line {
        Line::Node(self.nodes.leaf_of(cpu).0)
    }

    /// What the softirq does, but for callbacks that are ready: the CPU notices, reports, and asks
    /// for what it needs.
    pub(crate) fn advance(&mut self, at: &mut At<'_, impl Site>) {
        self.notice(at);
        self.report(at);
        if at.own.callbacks.has_untagged() && !self.sequence.in_progress() {
            self.ask(at);
        }
    }

    /// Looks whether a grace period has begun or ended; if so, does what that asks for.
    pub(super) fn notice(&mut self, at: &mut At<'_, impl Site>) {
        let leaf = self.line_of(at.cpu);
        at.host.touch(leaf, Access::Read);
        if at.own.sequence != self.sequence {
            at.host.touch(leaf, Access::Lock);
            if self.notice_locked(at) {
                self.begin(at);
            }
        }
    }

    /// The same, by a CPU that has the leaf's lock. Returns whether a grace period must begin.
    fn notice_locked(&mut self, at: &mut At<'_, impl Site>) -> bool {
        let sequence = self.sequence;
        if at.own.sequence == sequence {
            return false;
        }
        at.own.sequence = sequence;
        if let Some(noticed) = self.noticed.get_mut(at.cpu) {
            *noticed = sequence;
        }
        match at.plan.steps.omits(OWN) {
            false => at.own.callbacks.advance(sequence),
            true => at.own.callbacks.advance_all(),
        }
        at.own.is_needed = self.nodes.is_holdout(at.cpu);
        if sequence.in_progress() && !at.plan.steps.omits(FORGET) {
            at.own.has_passed = false;
        }
        self.accelerate(at)
    }

    /// Has a grace period begin for the CPU's callbacks, if none is in progress.
    pub(super) fn ask(&mut self, at: &mut At<'_, impl Site>) {
        at.host.touch(self.line_of(at.cpu), Access::Lock);
        if self.accelerate(at) {
            self.begin(at);
        }
    }

    /// Tags callbacks with the next full grace period and asks for it. Returns whether one must
    /// begin. The caller has the leaf's lock.
    fn accelerate(&mut self, at: &mut At<'_, impl Site>) -> bool {
        if at.own.callbacks.len() == at.own.callbacks.ready() {
            return false;
        }
        at.host.touch(Line::Global(0), Access::Read);
        let cookie = match at.plan.steps.omits(FULL) {
            false => self.sequence.snapshot(),
            true => Cookie::done_at(self.sequence.begin().end()),
        };
        at.own.callbacks.accelerate(cookie) && self.request(at, cookie)
    }

    /// Asks for the grace period of `cookie`, from the CPU's leaf, whose lock the caller has, up to
    /// where it has been asked for already, or one is in progress: then it is found at that one's
    /// end. Returns whether one must begin.
    fn request(&mut self, at: &mut At<'_, impl Site>, cookie: Cookie) -> bool {
        let leaf = self.nodes.leaf_of(at.cpu).0;
        let mut index = leaf;
        while let Some(node) = self.nodes.get_mut(index) {
            if index != leaf {
                at.host.touch(Line::Node(index), Access::Lock);
            }
            if node.needed.is_at_or_after(cookie) {
                return false;
            }
            if node.sequence.in_progress() {
                if !at.plan.steps.omits(REMEMBER) {
                    node.needed = cookie;
                }
                return false;
            }
            node.needed = cookie;
            match node.parent {
                Some((parent, _)) => index = parent,
                None => break,
            }
        }
        !self.sequence.in_progress()
    }

    /// Asks for a full grace period from here on, on nobody's behalf. Returns its cookie.
    pub(crate) fn want(&mut self, at: &mut At<'_, impl Site>) -> Cookie {
        let cookie = self.sequence.snapshot();
        if self.request(at, cookie) {
            self.begin(at);
        }
        cookie
    }

    /// Reports a quiescent state, if one has been passed and is waited for.
    fn report(&mut self, at: &mut At<'_, impl Site>) {
        if !at.own.is_needed || !at.own.has_passed {
            return;
        }
        at.own.is_needed = false;
        let (leaf, bit) = self.nodes.leaf_of(at.cpu);
        at.host.touch(Line::Node(leaf), Access::Lock);
        if self.clear(at, leaf, bit) {
            self.end(at);
        }
    }

    /// Those `bits` of `leaf`, whose lock the caller has, are no holdouts any more. Returns
    /// whether none is.
    pub(super) fn clear(&mut self, at: &mut At<'_, impl Site>, leaf: usize, bits: u64) -> bool {
        let (mut index, mut bits) = (leaf, bits);
        while let Some(node) = self.nodes.get_mut(index) {
            if node.holdouts & bits == 0 {
                // A scan was here before.
                return false;
            }
            node.holdouts &= !bits;
            if node.holdouts != 0 && !at.plan.steps.omits(SIBLINGS) {
                return false;
            }
            match node.parent {
                None => return true,
                Some((parent, bit)) => (index, bits) = (parent, bit),
            }
            at.host.touch(Line::Node(index), Access::Lock);
        }
        false
    }

    /// A grace period begins, unless one is in progress.
    pub(super) fn begin(&mut self, at: &mut At<'_, impl Site>) {
        if self.sequence.in_progress() {
            return;
        }
        self.sequence = self.sequence.begin();
        self.age_jiffies = 0;
        self.beat_in_jiffies = at.plan.options.stall_jiffies / 2;
        self.has_snapshot = false;
        at.host.touch(Line::Global(0), Access::Write);
        at.host.began(0);
        // What was updated before is seen by every CPU that a scan from here on finds in an
        // extended quiescent state: pairs with the fence of `Words::leave` [KN-1].
        fence(Ordering::SeqCst);
        for index in self.nodes.all() {
            at.host.touch(Line::Node(index), Access::Lock);
            self.nodes.set_sequence(index, self.sequence);
        }
        // It cannot ask for another one to begin: one is in progress.
        self.notice_locked(at);
        self.ask_timer(at.plan.options.first_fqs_jiffies, at.host);
    }

    /// The grace period in progress has ended; the next begins, if it was asked for.
    pub(super) fn end(&mut self, at: &mut At<'_, impl Site>) {
        self.sequence = self.sequence.end();
        // Without meaning until the next begins: idle engines are equal.
        (self.age_jiffies, self.beat_in_jiffies, self.has_snapshot) = (0, 0, false);
        at.host.touch(Line::Global(0), Access::Write);
        at.host.ended(0);
        let mut is_wanted = false;
        for index in self.nodes.all() {
            at.host.touch(Line::Node(index), Access::Lock);
            self.nodes.set_sequence(index, self.sequence);
            let needed = self.nodes.get(index).map(|node| node.needed);
            is_wanted |= needed.is_some_and(|needed| !self.sequence.is_done(needed));
        }
        if !at.plan.steps.omits(WAKE) {
            for sleeper in self.sleepers.iter() {
                at.host.raise(sleeper);
            }
        }
        if is_wanted || self.notice_locked(at) {
            self.begin(at);
        } else {
            at.host.timer_off();
        }
    }

    /// The timer: time has passed, and the holdouts are looked at.
    pub(crate) fn timer(&mut self, at: &mut At<'_, impl Site>) {
        let sequence = self.sequence;
        if !sequence.in_progress() {
            return;
        }
        self.pass_time(&at.plan.options);
        self.scan(at);
        if self.sequence == sequence && !at.plan.steps.omits(SCAN_AGAIN) {
            self.ask_timer(at.plan.options.next_fqs_jiffies, at.host);
        }
    }
}
