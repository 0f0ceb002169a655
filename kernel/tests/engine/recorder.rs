//! A host that writes down what an engine asks for, and does nothing of it.

use grace::Urgency;
use kernel::engine::{Access, Callback, Host, Line};

/// What was asked for since it was last cleared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorder {
    pub(crate) raised: Vec<usize>,
    pub(crate) resched: Vec<usize>,
    pub(crate) invoked: Vec<(usize, u64)>,
    pub(crate) timers: Vec<u32>,
    pub(crate) touched: Vec<(Line, Access)>,
    pub(crate) began: usize,
    pub(crate) ended: usize,
    pub(crate) is_over_budget: bool,
}

impl Recorder {
    /// Forgets what was asked for; what the budget is stays.
    pub(crate) fn clear(&mut self) {
        *self = Self { is_over_budget: self.is_over_budget, ..Self::default() };
    }

    /// How many accesses of this kind there were.
    pub(crate) fn count(&self, access: Access) -> usize {
        self.touched.iter().filter(|(_, other)| *other == access).count()
    }
}

impl Host for Recorder {
    fn raise(&mut self, cpu: usize) {
        if !self.raised.contains(&cpu) {
            self.raised.push(cpu);
        }
    }

    fn resched(&mut self, cpu: usize) {
        self.resched.push(cpu);
    }

    fn invoke(&mut self, owner: usize, count: u64) {
        self.invoked.push((owner, count));
    }

    fn timer(&mut self, jiffies: u32) {
        self.timers.push(jiffies);
    }

    fn timer_off(&mut self) {
        self.timers.clear();
    }

    fn touch(&mut self, line: Line, access: Access) {
        self.touched.push((line, access));
    }

    fn is_over_budget(&self) -> bool {
        self.is_over_budget
    }

    fn began(&mut self, _: usize) {
        self.began += 1;
    }

    fn ended(&mut self, _: usize) {
        self.ended += 1;
    }
}

/// A callback of 100 bytes.
pub(crate) const fn callback(urgency: Urgency) -> Callback {
    Callback { urgency, bytes: 100 }
}
