//! What threads run: short programs of instructions, with sections that the kernel may send back.
//!
//! The subjects of this module are a few instructions each, and what matters is where in them an
//! abort falls. So they are written as code for a small machine, one memory access an instruction,
//! rather than as functions; a mutant is a program with an instruction removed or moved. What an
//! instruction does is said in `step`.

use core::sync::atomic::Ordering;

use crate::memory::Location;

/// A register. What is in one is the thread's own, and survives an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

pub(super) const MINUS_ONE: u64 = u64::MAX;

/// All registers of a thread.
pub(super) type Regs = [u64; REGS];

/// A place in memory: always the same, or chosen by the registers and the CPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// This one.
    Is(Location),
    /// One of those.
    Of {
        /// Which, given the registers and the CPU that executes the instruction.
        pick: fn(&Regs, u8) -> Location,
        /// All that it may be.
        among: &'static [Location],
    },
}

impl At {
    pub(super) fn among(&self) -> &[Location] {
        match self {
            Self::Is(location) => core::slice::from_ref(location),
            Self::Of { among, .. } => among,
        }
    }
}

/// A constant, or what is in a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Is(u64),
    In(Reg),
}

/// What a load does with what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Take,
    Add,
    Subtract,
}

/// What a heavy fence does to the CPUs that it interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Barrier {
    /// `membarrier(PRIVATE_EXPEDITED_RSEQ)`: a full fence, and the section there is aborted.
    Restart,
    /// `membarrier(PRIVATE_EXPEDITED)`: a full fence.
    Plain,
    /// A full fence of the caller alone: what there is without membarrier.
    Own,
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
    Load {
        to: Reg,
        how: How,
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
    /// A locked addition; the value before goes into a register.
    LockedAdd {
        at: At,
        by: Value,
        before: Reg,
        order: Ordering,
    },
    /// A locked change that may leave the word as it is; the value before goes into a register.
    LockedChange {
        at: At,
        how: fn(u64, u64) -> u64,
        by: u64,
        before: Reg,
        order: Ordering,
    },
    /// Adds `Reg::Sum`, locked: for the thread that looks on, the word must now be what has been
    /// counted.
    ReadOut(Location),
    /// An exchange; the value before goes into a register.
    Swap {
        at: At,
        value: Value,
        before: Reg,
        order: Ordering,
    },
    /// A full fence.
    Fence,
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
    /// Takes a mutex, for which it waits.
    Lock(Location),
    Unlock(Location),
    /// Sleeps, if the word is still what the register says.
    Sleep(Location, Reg),
    /// Waits until the word is not any more what the register says: a condition variable.
    Await(Location, Reg),
    /// Wakes who sleeps.
    Wake,
    /// Asks for a grace period of the two indexes.
    Request,
    /// What the machine wants: a check of the index in `Reg::Index`, a flip to it, or nothing more.
    Drive {
        check: Label,
        flip: Label,
        idle: Label,
    },
    /// Tells the machine of a check: drained if the sum is 0.
    Checked,
    /// Tells the machine of a flip.
    Flipped,

    /// For the thread that looks on: a sum that is read out must be what has been counted, now.
    IsExact(Reg),

    /// For the thread that looks on: something has been counted.
    Counted,
    Set(Reg, Value),
    Plus(Reg, u64),
    PlusReg(Reg, Reg),
    IfIs(Reg, u64, Label),
    IfNot(Reg, u64, Label),
    /// Whether a register has none of these bits.
    IfBitless(Reg, u64, Label),
    Goto(Label),
}

/// A program.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    ops: Vec<Op>,
    labels: Vec<Option<u8>>,
}

impl Code {
    /// What is done as many times as `Reg::Left` says.
    pub(super) fn rounds(round: impl FnOnce(&mut Self)) -> Self {
        let mut code = Self::default();
        let begin = code.here();
        round(&mut code);
        code.op(Op::Plus(Reg::Left, MINUS_ONE));
        code.op(Op::IfNot(Reg::Left, 0, begin));
        code
    }

    /// A section, at the beginning of which an abort begins again.
    pub(super) fn section(
        &mut self,
        before: impl FnOnce(&mut Self),
        inside: impl FnOnce(&mut Self),
    ) {
        let (start, end) = (self.label(), self.label());
        let again = self.here();
        before(self);
        self.op(Op::Arm { start, end, abort: again });
        self.place(start);
        inside(self);
        self.place(end);
    }

    /// A label that is placed later.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Labels the next instruction.
    pub(super) fn place(&mut self, label: Label) {
        let at = self.ops.len() as u8;
        assert!(self.labels[label.0].replace(at).is_none(), "a label has one place");
    }

    /// A label of the next instruction.
    pub(super) fn here(&mut self) -> Label {
        let label = self.label();
        self.place(label);
        label
    }

    pub(super) fn op(&mut self, op: Op) {
        self.ops.push(op);
    }

    pub(super) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The instruction at a place; `None` at the end.
    pub(super) fn at(&self, pc: u8) -> Option<Op> {
        self.ops.get(usize::from(pc)).copied()
    }

    pub(super) fn find(&self, label: Label) -> u8 {
        self.labels[label.0].expect("every label is placed")
    }

    pub(super) fn load(&mut self, to: Reg, at: At, order: Ordering) {
        self.op(Op::Load { to, how: How::Take, at, order });
    }

    /// `Reg::Sum` plus or minus each of some words, one by one.
    pub(super) fn sum(&mut self, how: How, of: &[Location], order: Ordering) {
        for at in of {
            self.op(Op::Load { to: Reg::Sum, how, at: At::Is(*at), order });
        }
    }

    /// What is in these registers does not matter any more.
    pub(super) fn clear(&mut self, regs: &[Reg]) {
        regs.iter().for_each(|reg| self.op(Op::Set(*reg, Value::Is(0))));
    }

    pub(super) fn store(&mut self, at: Location, value: Value, order: Ordering) {
        self.op(Op::Store { at: At::Is(at), value, order });
    }
}
