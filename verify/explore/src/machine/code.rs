//! What threads run: short programs of instructions, with sections that the kernel may send back.
//!
//! The subjects of this module are a few instructions each, and what matters is where in them an
//! abort falls. So they are written as code for a small machine, one memory access an instruction,
//! rather than as functions; a mutant is a program with an instruction removed or moved. The texts
//! are in `worlds/programs`, which `assemble` reads; what an instruction does is said in `step`.

use core::ops::Range;
use core::sync::atomic::Ordering;

use serde::Deserialize;

use crate::memory::Location;

/// A register. What is in one is the thread's own, and survives an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reg {
    /// The number of an object.
    Object,
    /// An index, 0 or 1.
    Index,
    /// The number of a CPU.
    Cpu,
    /// A sum, or a value that is about to be stored.
    Sum,
    /// How often a section was aborted.
    Aborts,
    /// What a flag was.
    Flag,
    /// What the word was that one sleeps on.
    Epoch,
    /// How many rounds are left.
    Left,
}

pub(super) const REGS: usize = 8;

/// All registers of a thread.
pub(super) type Regs = [u64; REGS];

/// A place in memory: a word of so many, chosen by the register and the CPU, if it says so.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// The number of the first [`Location`] of these words, and how many there are.
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) offset: usize,
    /// So many words for each 1 in the register.
    pub(super) by: Option<(Reg, usize)>,
    /// As many words as the number of the CPU that executes the instruction.
    pub(super) is_own: bool,
}

impl At {
    pub(super) fn find(&self, regs: &Regs, cpu: u8) -> Location {
        let by = self.by.map_or(0, |(reg, words)| regs[reg as usize] as usize * words);
        let own = if self.is_own { usize::from(cpu) } else { 0 };
        Location::nth(self.first + self.offset + by + own)
    }

    /// The numbers of all locations that it may be.
    pub(super) fn among(&self) -> Range<usize> {
        let first = self.first + self.offset;
        match self.by.is_some() || self.is_own {
            true => self.first..self.first + self.count,
            false => first..first + 1,
        }
    }

    /// The only one that it may be.
    pub(super) fn fixed(&self) -> Location {
        assert_eq!(self.among().len(), 1, "always the same word");
        Location::nth(self.first + self.offset)
    }
}

/// A constant, or what is in a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Is(u64),
    In(Reg),
}

impl Value {
    pub(super) const fn of(self, regs: &Regs) -> u64 {
        match self {
            Self::Is(value) => value,
            Self::In(reg) => regs[reg as usize],
        }
    }
}

/// What a heavy fence does to the CPUs that it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Barrier {
    /// `membarrier(PRIVATE_EXPEDITED_RSEQ)`: a full fence, and the section there is aborted.
    Restart,
    /// `membarrier(PRIVATE_EXPEDITED)`: a full fence.
    Plain,
    /// The same, of the first two CPUs alone, which readers have.
    Readers,
    /// Nothing.
    None,
}

/// A place in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Instructions. Those of the last group touch nothing that is shared: they happen with the
/// instruction before them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// `rseq_cs = ` the descriptor of a section.
    Arm {
        /// The first instruction of it.
        start: Label,
        /// The one after its commit.
        end: Label,
        /// Where the kernel continues after an abort.
        abort: Label,
    },
    /// The CPU's number, as the kernel keeps it in the thread's rseq area.
    CpuNumber,
    /// What goes into the register is made of what was in it, and what is found.
    Load {
        to: Reg,
        how: fn(u64, u64) -> u64,
        at: At,
        order: Ordering,
    },
    Store {
        at: At,
        value: Value,
        order: Ordering,
    },
    /// An addition in one instruction, not locked: whole for its own CPU only.
    Add {
        at: At,
        by: u64,
        order: Ordering,
    },
    /// A locked instruction, an addition or an exchange: what goes into the word is made of what
    /// was there, and the value, unless that holds of the word and the number. The value before
    /// goes into a register.
    Update {
        at: At,
        how: fn(u64, u64) -> u64,
        by: Value,
        unless: (fn(u64, u64) -> bool, u64),
        before: Reg,
        order: Ordering,
    },
    /// A fence of the CPU's own: acquire, release, or sequentially consistent.
    Fence(Ordering),
    /// A heavy fence.
    Barrier(Barrier),
    /// Makes an object; its number goes into a register.
    New(Reg),
    /// Makes the object of this number.
    NewAt(u8),
    /// Reads a word of the object in the register.
    Touch(Reg),
    /// Frees the object in the register.
    Free(Reg),
    /// Reads the copy whose number is in the register, for the thread that looks on.
    ReadCopy(Reg),
    /// Begins to write this copy: no thread may be reading it.
    WriteCopy(u8),
    /// Takes a mutex, for which it waits.
    Lock(Location),
    Unlock(Location),
    /// Sleeps, if the word is still what the register says.
    Sleep(Location, Reg),
    /// Waits until the word is not any more what the register says: a condition variable.
    Await(Location, Reg),
    /// Wakes who sleeps on the word.
    Wake(Location),
    /// Asks for a grace period of the two indexes; the cookie goes into the register.
    Request {
        cookie: Option<Reg>,
        /// Under the machine's lock.
        is_locked: bool,
    },
    /// As long as the machine wants nothing, or the word has this value, the thread need not do
    /// anything.
    Rest,
    RestAt(Location, Value),
    /// What the machine wants: a check of the index in `Reg::Index`, a flip to it, to have the
    /// sequence in `Reg::Sum` handed out, or nothing more. What is none of these takes a step each;
    /// but where nothing is handed out it takes no time.
    Drive {
        check: Label,
        flip: Label,
        hand_out: Option<Label>,
        idle: Label,
        /// The machine's lock is taken when it begins to run.
        is_locked: bool,
    },
    /// Tells the machine of a check: drained if the sum is 0.
    Checked,
    /// Tells the machine of a flip, or of what was handed out.
    Flipped,
    HandedOut,

    /// For the thread that looks on: a sum that is read out must be what has been counted, now.
    IsExact(Reg),

    /// For the thread that looks on: two words are one value, not an older one than the newest that
    /// was read.
    IsValue {
        first: Reg,
        second: Reg,
        newest: Reg,
    },
    /// For the thread that looks on: something has been counted.
    Counted,
    Set(Reg, Value),
    /// What this makes of the register and the value.
    Calculate(Reg, fn(u64, u64) -> u64, Value),
    /// Goes on there if this holds of the register and the value.
    If(Reg, fn(u64, u64) -> bool, Value, Label),
    /// Whether the grace period of the cookie in the register has ended, and was handed out.
    IfEnded(Reg, Label),
    /// Whether it had at the sequence in the first register.
    IfPast(Reg, Reg, Label),
    Goto(Label),
}

/// A program.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) ops: Vec<Op>,
    /// Those that happen in one step with the one before.
    pub(super) joined: Vec<u8>,
    /// The labels, and where each of them is.
    labels: Vec<(String, Option<u8>)>,
}

impl Code {
    /// The label of this name, which may be placed later.
    pub(super) fn label(&mut self, name: &str) -> Label {
        let known = self.labels.iter().position(|(known, _)| known == name);
        Label(known.unwrap_or_else(|| {
            self.labels.push((name.to_owned(), None));
            self.labels.len() - 1
        }))
    }

    /// Labels the next instruction.
    pub(super) fn place(&mut self, name: &str) {
        let at = u8::try_from(self.ops.len()).expect("programs are short");
        let label = self.label(name);
        assert!(self.labels[label.0].1.replace(at).is_none(), "{name} has one place");
    }

    /// The next instruction happens in one step with the one before.
    pub(super) fn join(&mut self) {
        self.joined.push(self.ops.len() as u8);
    }

    /// The instruction at a place; `None` at the end.
    pub(super) fn at(&self, pc: u8) -> Option<Op> {
        self.ops.get(usize::from(pc)).copied()
    }

    pub(super) fn find(&self, label: Label) -> u8 {
        let (name, at) = &self.labels[label.0];
        at.unwrap_or_else(|| panic!("{name} is not placed"))
    }
}
