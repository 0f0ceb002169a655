//! The section of a litmus test: for each kind of reader, and where its two accesses stand.

use crate::harness::kebab;
use crate::scenario::Op::{Register, Request, Set, Unregister, Wait};
use crate::scenario::{Op, Scenario, Thread, parsed};

/// A kind of reader that the library has, with its fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reader {
    /// Sections between light fences; grace periods execute the heavy one.
    Ordinary,
    /// The same, with a nested section between the accesses.
    Nested,
    /// The same, registered for the section only.
    Late,
    /// Sections between full fences: the twin for machines without membarrier.
    Portable,
    /// The same, with a nested section between the accesses.
    PortableNested,
    /// The same, registered for the section only.
    PortableLate,
    /// QSBR, online for the section only.
    Qsbr,
    /// QSBR, online all the time: the section lies between two quiescent states.
    QsbrStates,
    /// QSBR without membarrier, online for the section only.
    PortableQsbr,
    /// QSBR without membarrier, between two quiescent states.
    PortableQsbrStates,
    /// QSBR, while a reader with light fences is registered too.
    Mixed,
}

/// Where the two accesses stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Both in the section, the first one first.
    InOrder,
    /// Both in the section, the second one first.
    Swapped,
    /// The first before the section, the second in it.
    Before,
    /// The first in the section, the second after it.
    After,
    /// The first before the section, the second after it: it is empty.
    Empty,
}

impl Reader {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Ordinary,
        Self::Nested,
        Self::Late,
        Self::Portable,
        Self::PortableNested,
        Self::PortableLate,
        Self::Qsbr,
        Self::QsbrStates,
        Self::PortableQsbr,
        Self::PortableQsbrStates,
        Self::Mixed,
    ];

    /// Short, for the names of tests.
    pub fn name(self) -> String {
        kebab(&self)
    }

    /// Whether it registers for its section only.
    pub const fn is_late(self) -> bool {
        matches!(self, Self::Late | Self::PortableLate)
    }

    /// Whether fences are instructions.
    pub fn is_portable(self) -> bool {
        self.name().starts_with("portable")
    }

    /// A thread whose section has these two accesses, in this shape.
    pub fn section(self, shape: Shape, first: Op, second: Op) -> Thread {
        let (before, inside, after) = match shape {
            Shape::InOrder => (None, [Some(first), Some(second)], None),
            Shape::Swapped => (None, [Some(second), Some(first)], None),
            Shape::Before => (Some(first), [None, Some(second)], None),
            Shape::After => (None, [Some(first), None], Some(second)),
            Shape::Empty => (Some(first), [None, None], Some(second)),
        };
        let accesses = [before, inside[0], inside[1], after];
        let words = self.brackets().split(' ').flat_map(|word| match word.parse::<usize>() {
            Ok(place) => accesses[place].into_iter().collect(),
            Err(_) => parsed(word),
        });
        self.thread("reader", &words.collect::<Vec<_>>())
    }

    /// What a thread does around its accesses: of these 0 comes before the section, 1 and 2 in it,
    /// and 3 after it.
    const fn brackets(self) -> &'static str {
        match self {
            Self::Ordinary | Self::Portable => "0 lock 1 2 unlock 3",
            Self::Nested | Self::PortableNested => "0 lock 1 lock unlock 2 unlock 3",
            Self::Late | Self::PortableLate => "0 register lock 1 2 unlock unregister 3",
            Self::Qsbr | Self::PortableQsbr | Self::Mixed => "0 online 1 2 offline 3",
            Self::QsbrStates | Self::PortableQsbrStates => {
                "online 0 quiescent-state 1 2 quiescent-state 3 offline"
            }
        }
    }

    fn thread(self, name: &'static str, program: &[Op]) -> Thread {
        match self {
            _ if self.is_late() => Thread::other(name, program),
            Self::Ordinary | Self::Nested | Self::Portable | Self::PortableNested => {
                Thread::reader(name, program)
            }
            _ => Thread::qsbr(name, program),
        }
    }

    /// A thread that is registered and does nothing; a late one comes and goes.
    pub(crate) fn bystander(self) -> Thread {
        let program: &[Op] = if self.is_late() { &[Register, Unregister] } else { &[] };
        self.thread("bystander", program)
    }

    /// Those threads as a scenario, with this kind's fences.
    pub(crate) fn scenario(self, name: String, mut threads: Vec<Thread>) -> Scenario {
        if self == Self::Mixed {
            threads.push(Thread::reader("with light fences", &[]));
        }
        Scenario { portable: self.is_portable(), ..Scenario::new(name, threads) }
    }
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::InOrder, Self::Swapped, Self::Before, Self::After, Self::Empty];

    /// Short, for the names of tests.
    pub fn name(self) -> String {
        kebab(&self)
    }
}

/// A thread with a grace period between two accesses.
pub(crate) fn grace_period(name: &'static str, first: Op, second: Op) -> Thread {
    Thread::other(name, &[first, Request, Wait, second])
}

/// Sets a variable to 1.
pub(crate) const fn set(variable: u8) -> Op {
    Set(variable, 1)
}
