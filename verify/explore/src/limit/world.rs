//! The state: the two words of the domain, the queues, the threads; and what must hold of it.

use core::hash::Hash;
use std::collections::VecDeque;

use grace::limit::{Amount, Stock};

use super::scenario::{Object, Scenario};
use crate::program;
use crate::system::Outcome;

/// A set of threads: those whose section is waited for.
pub(super) type Threads = u8;

/// An object, and the sections that have to end before it may be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Retired {
    pub(super) object: Object,
    pub(super) readers: Threads,
    /// Whether a callback that was taken from a queue queues itself anew.
    pub(super) is_own: bool,
}

impl Retired {
    pub(super) fn amount(self) -> Amount {
        Amount::object(u64::from(self.object.bytes))
    }
}

/// What a thread has retired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    pub(super) waiting: VecDeque<Retired>,
    /// Whether somebody runs it.
    pub(super) is_run: bool,
    /// Its thread has ended, and was over the limit by so much.
    pub(super) orphan: Option<Amount>,
}

impl Queue {
    /// How many are ready. The first possible moment; later ones come of the threads' steps.
    pub(super) fn ready(&self) -> usize {
        self.waiting.iter().take_while(|one| one.readers == 0).count()
    }
}

/// Which word.
pub(super) const OBJECTS: usize = 0;
pub(super) const BYTES: usize = 1;

/// Where a thread is in what it does; the last one is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Frame {
    /// Retires an object.
    Retire { retired: Retired, at: RetireAt },
    /// Runs so many callbacks of a queue.
    Run { of: usize, left: u8 },
    /// Stops to run a queue.
    Leave { of: usize },
    /// A callback that blocks until all clients have ended.
    Blocked,
    /// A callback ends.
    Return,
    /// Gives back to the domain: objects first, then bytes.
    Release(Amount),
    /// Settles what is over the limit.
    Settle(SettleAt),
    /// Ends.
    Exit(ExitAt),
}

/// An attempt to charge what is retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Charge {
    /// No more than is missing.
    pub(super) is_bare: bool,
    pub(super) has_waited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum RetireAt {
    Begin,
    Charge(Charge),
    ChargeBytes {
        charge: Charge,
        wanted: Amount,
        seen: u64,
    },
    Undo {
        charge: Charge,
        wanted: Amount,
        charged: Amount,
    },
    /// There is no room: is it over the limit?
    Full,
    FullBytes {
        seen: u64,
    },
    Borrow,
    BorrowBytes {
        wanted: Amount,
    },
    Wait {
        readers: Threads,
        runs: bool,
    },
    /// Runs what is ready, and tries once more.
    AfterWait {
        has_run: bool,
    },
    Free,
    /// A mutant's: the room that it has looked for, and now takes.
    Take {
        wanted: Amount,
        has_objects: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SettleAt {
    Begin,
    Bytes { seen: u64 },
    Wait { readers: Threads },
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ExitAt {
    Begin,
    Mark,
    Run,
    Empty,
    Gone,
}

/// A thread: a client, or the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub(super) stock: Stock,
    /// What the callbacks that it runs had been charged: what it may queue meanwhile.
    pub(super) uncharged: Amount,
    /// Callbacks under way, one in the other.
    pub(super) callbacks: u8,
    pub(super) in_section: bool,
    pub(super) frames: Vec<Frame>,
    /// Its queue.
    pub(super) queue: usize,
    /// The lowest value that each word has had since this thread last touched it, where it may
    /// look.
    lowest: [u64; 2],
    /// What it has retired so far, and the sections that it may have.
    pub(super) retired: u8,
    pub(super) sections: u8,
    /// How many threads there are still to come here, this one included.
    pub(super) lives: u8,
}

/// A state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The domain's charge: objects, and bytes.
    pub(super) words: [u64; 2],
    pub(super) queues: Vec<Queue>,
    /// The clients, and then the worker.
    pub(super) threads: Vec<Thread>,
    /// Whether the worker has still to block.
    pub(super) will_block: bool,
}

pub(super) type Turn<'a> = program::Turn<'a, Scenario>;

/// What a thread may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Lock,
    Unlock,
    Retire,
    Run(usize),
    Exit,
}

impl World {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let thread =
            |queue, sections, lives| Thread { queue, sections, lives, ..Thread::default() };
        let clients = scenario.clients.iter().enumerate();
        let mut threads: Vec<Thread> =
            clients.map(|(index, one)| thread(index, one.sections, one.lives)).collect();
        threads.push(thread(threads.len(), 0, 1));
        Self {
            words: [0; 2],
            queues: vec![Queue::default(); threads.len()],
            threads,
            will_block: scenario.worker_blocks,
        }
    }

    pub(super) fn worker(&self) -> usize {
        self.threads.len() - 1
    }

    pub(super) fn are_clients_gone(&self) -> bool {
        self.threads[..self.worker()].iter().all(|thread| thread.lives == 0)
    }

    pub(super) fn is_end(&self) -> bool {
        self.are_clients_gone()
            && self.threads.iter().all(|thread| thread.frames.is_empty())
            && self.queues.iter().all(|queue| queue.waiting.is_empty())
    }

    /// The sections that are open.
    pub(super) fn readers(&self) -> Threads {
        let readers = self.threads.iter().enumerate().filter(|(_, thread)| thread.in_section);
        readers.fold(0, |set, (index, _)| set | 1 << index)
    }

    /// Adds to a word, or subtracts. Returns the value before, or `None` if there was less.
    pub(super) fn change(&mut self, me: usize, word: usize, by: i64) -> Option<u64> {
        let before = self.words[word];
        let after = before.checked_add_signed(by)?;
        self.words[word] = after;
        for (index, thread) in self.threads.iter_mut().enumerate() {
            let lowest = &mut thread.lowest[word];
            *lowest = if index == me { after } else { after.min(*lowest) };
        }
        Some(before)
    }

    /// Loads a word with relaxed order, which may find an older value. Of those that its thread has
    /// not seen to be older, the lowest is as bad as any.
    pub(super) fn load(&mut self, turn: &mut Turn<'_>, word: usize) -> u64 {
        let latest = self.words[word];
        let lowest = self.threads[turn.me].lowest[word];
        if lowest == latest || turn.choice.choose(2) == 1 {
            return lowest;
        }
        self.threads[turn.me].lowest[word] = latest;
        latest
    }

    pub(super) fn charged(&self) -> Amount {
        Amount { objects: self.words[OBJECTS], bytes: self.words[BYTES] }
    }

    /// Only a thread that is over the limit, or is about to be, scans.
    fn forget_values(&mut self) {
        for thread in &mut self.threads {
            let frame = thread.frames.last();
            let borrows =
                matches!(frame, Some(Frame::Retire { at: RetireAt::BorrowBytes { .. }, .. }));
            if !borrows && !thread.stock.is_over_limit() {
                thread.lowest = [0; 2];
            }
        }
    }

    /// Takes a step of a thread.
    pub(super) fn take(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let outcome = match self.threads[me].frames.last().copied() {
            None => self.begin(turn),
            Some(Frame::Retire { retired, at }) => self.retire(turn, retired, at),
            Some(Frame::Run { of, left }) => self.run(turn, of, left),
            Some(Frame::Leave { of }) => self.leave(turn, of),
            Some(Frame::Blocked) if self.are_clients_gone() => self.pop(me),
            Some(Frame::Blocked) => Outcome::Blocked,
            Some(Frame::Return) => {
                turn.tell(|| "the callback returns".into());
                self.threads[me].callbacks -= 1;
                self.pop(me)
            }
            Some(Frame::Release(amount)) => self.release(turn, amount),
            Some(Frame::Settle(at)) => self.settle(turn, at),
            Some(Frame::Exit(at)) => self.exit(turn, at),
        };
        self.forget_values();
        match outcome {
            Outcome::Moved => self
                .mismatch(turn.scenario)
                .map_or(Outcome::Moved, |what| Outcome::Violation(what.into())),
            other => other,
        }
    }

    fn begin(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        let ops = self.ops(turn);
        if ops.is_empty() {
            return Outcome::Blocked;
        }
        match ops[turn.choice.choose(ops.len())] {
            Op::Lock => {
                turn.tell(|| "a section begins".into());
                self.threads[me].in_section = true;
                self.threads[me].sections -= 1;
                Outcome::Moved
            }
            Op::Unlock => self.section_ends(turn),
            Op::Retire => {
                let index = self.threads[me].retired;
                self.threads[me].retired += 1;
                let object = turn.scenario.clients[me].retires[usize::from(index)];
                let retired = Retired { object, readers: self.readers(), is_own: false };
                self.push(me, Frame::Retire { retired, at: RetireAt::Begin });
                self.take_inner(turn)
            }
            Op::Run(of) => self.begin_to_run(turn, of),
            Op::Exit => {
                turn.tell(|| "ends".into());
                self.push(me, Frame::Exit(ExitAt::Begin))
            }
        }
    }

    /// The step after one that no other thread can see.
    pub(super) fn take_inner(&mut self, turn: &mut Turn<'_>) -> Outcome {
        match self.threads[turn.me].frames.last().copied() {
            Some(Frame::Retire { retired, at }) => self.retire(turn, retired, at),
            _ => Outcome::Moved,
        }
    }

    fn ops(&self, turn: &Turn<'_>) -> Vec<Op> {
        let me = turn.me;
        let thread = &self.threads[me];
        let can_run = |queue: &Queue| !queue.is_run && queue.ready() != 0;
        if me == self.worker() {
            let queues = self.queues.iter().enumerate();
            return queues.filter(|(_, one)| can_run(one)).map(|(of, _)| Op::Run(of)).collect();
        }
        let mut ops = Vec::new();
        if thread.lives == 0 {
            return ops;
        }
        let has_more = usize::from(thread.retired) < turn.scenario.clients[me].retires.len();
        if thread.in_section {
            ops.push(Op::Unlock);
        } else {
            if thread.sections != 0 {
                ops.push(Op::Lock);
            }
            if can_run(&self.queues[thread.queue]) {
                ops.push(Op::Run(thread.queue));
            }
            if !has_more {
                ops.push(Op::Exit);
            }
        }
        if has_more {
            ops.push(Op::Retire);
        }
        ops
    }

    fn section_ends(&mut self, turn: &mut Turn<'_>) -> Outcome {
        let me = turn.me;
        turn.tell(|| "the section ends".into());
        self.threads[me].in_section = false;
        let gone = !(1 << me);
        for queue in &mut self.queues {
            queue.waiting.iter_mut().for_each(|one| one.readers &= gone);
        }
        for frame in self.threads.iter_mut().flat_map(|thread| &mut thread.frames) {
            if let Frame::Retire { retired, .. } = frame {
                retired.readers &= gone;
            }
            match frame {
                Frame::Retire { at: RetireAt::Wait { readers, .. }, .. }
                | Frame::Settle(SettleAt::Wait { readers }) => *readers &= gone,
                _ => {}
            }
        }
        if turn.is("over-limit-forgotten") {
            self.threads[me].stock.clear_over_limit();
        }
        if self.threads[me].stock.is_over_limit() && !turn.is("no-settling") {
            self.push(me, Frame::Settle(SettleAt::Begin));
        }
        Outcome::Moved
    }

    pub(super) fn push(&mut self, me: usize, frame: Frame) -> Outcome {
        self.threads[me].frames.push(frame);
        Outcome::Moved
    }

    pub(super) fn pop(&mut self, me: usize) -> Outcome {
        self.threads[me].frames.pop();
        Outcome::Moved
    }

    /// The innermost frame becomes another.
    pub(super) fn goto(&mut self, me: usize, frame: Frame) -> Outcome {
        self.threads[me].frames.pop();
        self.push(me, frame)
    }

    /// What is charged for: what waits, and what threads have.
    fn held(&self) -> Amount {
        let waiting = self.waiting();
        let threads = self.threads.iter();
        threads.fold(waiting, |sum, one| sum.plus(one.stock.left()).plus(one.uncharged))
    }

    fn waiting(&self) -> Amount {
        let all = self.queues.iter().flat_map(|queue| &queue.waiting);
        all.fold(Amount::NONE, |sum, one| sum.plus(one.amount()))
    }

    /// What is wrong with a state, whatever led there.
    fn mismatch(&self, scenario: &Scenario) -> Option<&'static str> {
        let charged = self.charged();
        if !self.held().fits(charged) {
            return Some("something waits, or may be retired, that is not charged");
        }
        let over_limit = self.threads.iter().map(|thread| thread.stock.over_limit());
        if over_limit.clone().any(|over_limit| over_limit.objects > 1) {
            return Some("a thread is over the limit by more than one object");
        }
        // The thread that runs the queue of one that ended over the limit sees to its end.
        let inherited = self.queues.iter().filter(|queue| queue.is_run);
        let inherited = inherited.filter_map(|queue| queue.orphan);
        let over = over_limit.chain(inherited).fold(Amount::NONE, Amount::plus);
        let all = self.queues.iter().flat_map(|queue| &queue.waiting);
        let largest = all.map(|one| one.amount().bytes).max().unwrap_or(0);
        let bytes = scenario.limit.bytes.max(largest);
        if !self.waiting().fits(Amount { bytes, ..scenario.limit }.plus(over)) {
            return Some("more waits than the limit and one object a thread");
        }
        None
    }

    /// What is wrong with an end.
    pub(super) fn fault(&self) -> Option<String> {
        let charged = self.charged();
        let held = self.held();
        (charged != held).then(|| {
            let (objects, bytes) = (charged.minus(held).objects, charged.minus(held).bytes);
            format!("in the end {objects} objects and {bytes} bytes are charged for nothing")
        })
    }
}
