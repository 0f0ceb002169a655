//! The domains with something to do, by when it is their turn.
//!
//! A schedule beside a table by domain: to add one, to bring it forward, to remove it and to find
//! those that are due takes a number of steps that is logarithmic in the number of domains, on
//! average, whether a program has one domain or one for each of its objects.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ptr;

use crate::reclaim::by_address::ByAddress;
use crate::reclaim::domain_state::{DomainState, WeakHandle};

/// So much of the schedule may be no task's, however few tasks there are.
const SLACK: usize = 8;

/// A domain with something to do.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) domain: WeakHandle,
    /// When it is this one's turn.
    pub(super) due_ns: u64,
    /// When what has been queued has waited for company long enough.
    pub(super) close_at_ns: u64,
    /// More was ready than one turn may run.
    pub(super) has_more: bool,
    /// Where in the list of queues the next turn begins to run what is ready.
    pub(super) next_queue: usize,
    /// Somebody was in a hurry, and a queue could not be closed, since another thread was at it.
    pub(super) hurries_still: bool,
}

impl Task {
    pub(super) fn new(domain: WeakHandle, due_ns: u64, close_at_ns: u64) -> Self {
        Self { domain, due_ns, close_at_ns, has_more: false, next_queue: 0, hurries_still: false }
    }
}

/// At most one task for each domain.
#[derive(Debug)]
pub(super) struct Tasks {
    all: ByAddress<Task>,
    /// When each of them is due, and the address of its domain, the earliest first. A task that was
    /// taken out, or is due at another time by now, leaves what it had here: that is passed over.
    /// The first is always a task's.
    schedule: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Tasks {
    pub(super) const fn new() -> Self {
        Self { all: ByAddress::new(), schedule: BinaryHeap::new() }
    }

    /// Adds the task of a domain that has none. Returns whether it is due before all others.
    pub(super) fn add(&mut self, task: Task) -> bool {
        let domain = task.domain.address();
        let entry = (task.due_ns, domain.addr());
        self.all.insert(domain, task);
        self.schedule.push(Reverse(entry));
        self.schedule.peek() == Some(&Reverse(entry))
    }

    /// Changes the times of a domain's task, if there is one.
    pub(super) fn change(&mut self, domain: *const DomainState, f: &mut dyn FnMut(&mut Task)) {
        if let Some(task) = self.all.get_mut(domain) {
            let before = task.due_ns;
            f(task);
            if task.due_ns != before {
                self.schedule.push(Reverse((task.due_ns, domain.addr())));
                self.pass_over();
            }
        }
    }

    /// Takes a domain's task out.
    pub(super) fn remove(&mut self, domain: *const DomainState) -> Option<Task> {
        let task = self.all.remove(domain)?;
        self.pass_over();
        Some(task)
    }

    /// Takes out of the schedule what is no task's: what is first there, and, where that is most of
    /// it, everything.
    fn pass_over(&mut self) {
        let Self { all, schedule } = self;
        let is_of_task = |Reverse((due_ns, domain)): &Reverse<(u64, usize)>| {
            let task = all.get(ptr::without_provenance::<DomainState>(*domain));
            task.is_some_and(|task| task.due_ns == *due_ns)
        };
        if schedule.len() > 2 * all.len() + SLACK {
            schedule.clear();
            schedule.shrink_to(2 * all.len() + SLACK);
            schedule.extend(
                all.iter().map(|task| Reverse((task.due_ns, task.domain.address().addr()))),
            );
        }
        while schedule.peek().is_some_and(|first| !is_of_task(first)) {
            schedule.pop();
        }
    }

    /// When the first of them is due.
    pub(super) fn first_due_ns(&self) -> Option<u64> {
        self.schedule.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes out the first of them, if it is due.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<Task> {
        let &Reverse((at_ns, domain)) = self.schedule.peek()?;
        if at_ns <= now_ns { self.remove(ptr::without_provenance(domain)) } else { None }
    }

    /// Takes out all of them.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Task> + use<> {
        self.schedule.clear();
        self.all.take_all()
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert!((self.all.len()..=2 * self.all.len() + SLACK).contains(&self.schedule.len()));
        self.all.len()
    }

    #[cfg(test)]
    pub(super) fn has(&self, domain: *const DomainState) -> bool {
        self.all.get(domain).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Domain;
    use crate::reclaim::domain_state::Named;

    /// Each task comes out once, when it is due and not before, in the order of the schedule,
    /// whatever has been brought forward or taken out meanwhile.
    #[test]
    fn tasks_come_out_when_they_are_due() {
        let domains: Vec<Domain> = (0..40).map(|_| Domain::new()).collect();
        let core = |n: usize| ptr::from_ref(domains[n].tag().core());
        let at = |s: u64| s * 1_000_000_000;
        let mut tasks = Tasks::new();
        for (n, domain) in domains.iter().enumerate() {
            let domain = domain.tag().handle().downgrade();
            // Two of each time; the earliest come last.
            let due = at(100 - n as u64 / 2);
            let first = tasks.add(Task::new(domain, due, at(0)));
            assert!(first || n % 2 == 1, "it is due before all others, or with one");
        }
        tasks.change(core(0), &mut |task| task.due_ns = at(7));
        tasks.change(core(1), &mut |task| task.due_ns = at(200));
        assert!(tasks.remove(core(39)).is_some() && tasks.remove(core(39)).is_none());
        assert!(!tasks.has(core(39)) && tasks.has(core(38)));
        assert_eq!((tasks.len(), tasks.first_due_ns()), (39, Some(at(7))));
        assert!(tasks.take_due(at(6)).is_none());
        let due: Vec<_> = std::iter::from_fn(|| tasks.take_due(at(82))).collect();
        assert_eq!(due.len(), 4, "that which was brought forward, one of 81, two of 82");
        assert_eq!([0, 1].map(|n| due[n].domain.address()), [core(0), core(38)]);
        assert_eq!((tasks.len(), tasks.first_due_ns()), (35, Some(at(83))));
        assert_eq!(tasks.take_all().count(), 35);
        assert_eq!((tasks.len(), tasks.first_due_ns()), (0, None));
    }
}
