//! What threads do: a scenario is a handful of short programs and where the counters start.

use std::borrow::Cow;

use grace::policy::{Adaptive, AnyPolicy, Tick};
use grace::{Number, Sequence, Start};
use serde::Deserialize;

use crate::harness;

/// A few threads and what each of them does, once; as `worlds/grace_periods.toml` has some.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Scenario {
    /// Short and unique.
    pub name: Cow<'static, str>,
    /// Light and heavy fences are both sequentially consistent fences.
    #[serde(default)]
    pub portable: bool,
    /// At most four.
    pub threads: Vec<Thread>,
    /// The driver sleeps as soon as it has found holdouts; else it never does.
    #[serde(default)]
    pub sleeping: bool,
    /// Everything happens on the tick.
    #[serde(default)]
    pub ticking: bool,
    /// Sequence and number start one grace period before their wrap.
    #[serde(default)]
    pub before_the_wrap: bool,
    /// How wide a number is, if it is not as wide as usual.
    pub number_bits: Option<u32>,
    /// This thread may vanish at any step at which it drives and holds no lock, and this is
    /// reported to the machine ([`grace::Event::Abandoned`]).
    pub may_vanish: Option<usize>,
    /// For litmus tests: the outcome that is looked for, if it is not the freeing of an object.
    #[serde(default, rename = "never")]
    pub outcome: Vec<Outcome>,
    /// Variables of a litmus test and their values when all is over: the rest of the outcome.
    #[serde(skip)]
    pub finally: Vec<(u8, u8)>,
}

/// One thread.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "&'static str")]
pub struct Thread {
    /// For traces.
    pub name: &'static str,
    /// It announces quiescent states; else light fences are at the ends of its sections.
    pub is_qsbr: bool,
    /// Its reader is registered when the scenario begins.
    pub registered: bool,
    /// Its sections are another domain's, in which no grace period ever begins.
    pub liburcu: bool,
    /// What it does, in order.
    pub program: Vec<Op>,
}

/// One thing that a thread does; most take several steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Registers the thread's reader.
    Register,
    /// Takes it out again.
    Unregister,
    /// Begins a section, nested or not.
    Lock,
    /// Ends one.
    Unlock,
    /// Loads the pointer and looks at the object.
    Read,
    /// Looks at the object again.
    ReadAgain,
    /// QSBR: begins to hold references.
    Online,
    /// QSBR: holds none, and begins again.
    QuiescentState,
    /// QSBR: holds none until it comes online.
    Offline,
    /// Writes a new object and swaps it for the published one.
    Swap(u8),
    /// The same by a plain store: for one who is the only updater.
    Store(u8),
    /// Requests a grace period.
    Request,
    /// Requests one that no thread waits for.
    RequestInBackground,
    /// Waits until the request is served, driving the machine if no thread does.
    Wait,
    /// The same; the first time that another thread drives, takes its place.
    WaitImpatiently,
    /// Drives the machine as far as is possible without waiting, if no thread does.
    Advance,
    /// The same at a tick, as the worker does.
    AdvanceAtTick,
    /// Looks once whether the request is served; if not, the next operation is left out.
    Poll,
    /// Frees the object that was published before.
    Free,
    /// Sets a variable of a litmus test to a value, from 1.
    Set(u8, u8),
    /// Loads a variable of a litmus test.
    Get(u8),
    /// Changes a link to a value, as a list's updater does: an element comes in, or goes.
    Publish(u8, u8),
    /// Goes by a link.
    Follow(u8),
}

/// One condition on the end of a litmus test: what a thread's load of a variable returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "(u8, u8)")]
pub struct Outcome {
    /// Which thread.
    pub thread: usize,
    /// Which variable.
    pub variable: u8,
    /// What its last [`Op::Get`] of it returned; an outcome is not reached without one.
    pub value: u8,
}

impl From<(u8, u8)> for Outcome {
    /// Of thread 0, the only one that the table asks.
    fn from((variable, value): (u8, u8)) -> Self {
        Self { thread: 0, variable, value }
    }
}

impl Scenario {
    /// A scenario with membarrier, 32-bit numbers from zero, and a driver that never sleeps.
    pub fn new(name: impl Into<Cow<'static, str>>, threads: Vec<Thread>) -> Self {
        Self { name: name.into(), threads, ..Self::default() }
    }

    /// Where the machine's counters start, and how wide a number is.
    pub(crate) fn start(&self) -> Start {
        let mut start = Start::ZERO;
        if self.before_the_wrap {
            start.sequence = Sequence::after(u64::MAX >> 1);
            start.number = Number(u32::MAX);
        }
        start.number_bits = self.number_bits.unwrap_or(start.number_bits);
        start
    }

    /// When grace periods start, and how often the driver looks before it sleeps.
    pub(crate) fn policy(&self) -> AnyPolicy {
        if self.ticking {
            return AnyPolicy::Tick(Tick);
        }
        let looks_max = if self.sleeping { 1 } else { u32::MAX };
        AnyPolicy::Adaptive(Adaptive { looks_max, looks_max_expedited: looks_max })
    }

    /// The same with a mutant: some are a different program, rather than a different step.
    pub(crate) fn with(mut self, mutant: &str) -> Self {
        for Thread { program, .. } in &mut self.threads {
            match mutant {
                "move-removes-first" => {
                    turn(program, |two| matches!(two, [Op::Publish(..), Op::Publish(..)]));
                }
                "move-read-from-the-end" => {
                    turn(program, |two| matches!(two, [Op::Follow(_), Op::Follow(_)]));
                }
                "request-before-publication" => turn(program, |two| {
                    matches!(two, [Op::Swap(_) | Op::Store(_) | Op::Set(..), Op::Request])
                }),
                "move-waits-too-early" => {
                    if let Some(at) = program.iter().position(|op| *op == Op::Request) {
                        program[at - 1..=at + 1].rotate_left(1);
                    }
                }
                "move-without-grace-period" => {
                    program.retain(|op| !matches!(op, Op::Request | Op::Wait));
                }
                _ => {}
            }
        }
        self
    }
}

/// Exchanges the operations of each pair of which this holds.
fn turn(program: &mut [Op], holds: fn(&[Op]) -> bool) {
    let mut at = 1;
    while at < program.len() {
        if holds(&program[at - 1..=at]) {
            program.swap(at - 1, at);
            at += 1;
        }
        at += 1;
    }
}

impl Thread {
    /// A reader with light fences, registered from the start.
    pub fn reader(name: &'static str, program: &[Op]) -> Self {
        Self { name, is_qsbr: false, registered: true, liburcu: false, program: program.to_vec() }
    }

    /// A QSBR reader, registered from the start, offline.
    pub fn qsbr(name: &'static str, program: &[Op]) -> Self {
        Self { is_qsbr: true, ..Self::reader(name, program) }
    }

    /// A thread that is not registered.
    pub fn other(name: &'static str, program: &[Op]) -> Self {
        Self { registered: false, ..Self::reader(name, program) }
    }
}

impl From<&'static str> for Thread {
    /// As a text has it: of which kind, its name, what it does.
    fn from(text: &'static str) -> Self {
        let (who, program) = text.split_once(": ").expect("a thread has a program");
        let program: Vec<Op> = program.split(' ').flat_map(parsed).collect();
        match who.split_once(' ') {
            Some(("reader", name)) => Self::reader(name, &program),
            Some(("qsbr", name)) => Self::qsbr(name, &program),
            Some(("other", name)) => Self::other(name, &program),
            _ => panic!("{who} is of no kind"),
        }
    }
}

/// The operations that a word stands for.
pub(crate) fn parsed(word: &str) -> Vec<Op> {
    let (name, object) = word.split_once(':').unwrap_or((word, "0"));
    let (object, value) = object.split_once('=').unwrap_or((object, "1"));
    let [object, value] = [object, value].map(|number| number.parse().expect("a number"));
    match name {
        "publish" => vec![Op::Publish(object, value)],
        "follow" => vec![Op::Follow(object)],
        "section" => vec![Op::Lock, Op::Read, Op::Unlock],
        "swap" => vec![Op::Swap(object)],
        "update" => vec![Op::Swap(object), Op::Request, Op::Wait, Op::Free],
        "overwrite" => vec![Op::Store(object), Op::Request, Op::Wait, Op::Free],
        _ => vec![harness::variant(name).unwrap_or_else(|| panic!("{word} is no operation"))],
    }
}
