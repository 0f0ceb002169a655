//! Costs on the simulated machine.
//!
//! They are in picoseconds, since 0.7 ns per instruction matters for billions of them. A preset
//! names its source; costs without a source are marked as estimates, and can be changed like the
//! rest.

/// Picoseconds.
pub type Picos = u64;

/// Picoseconds in a nanosecond.
pub const PICOS: Picos = 1_000;

/// Of the Pentium III.
const CYCLE: Picos = 1_400;

/// What things cost: on a Pentium III Xeon of 700 MHz, and on a server of today.
macro_rules! costs {
    ($($(#[$about:meta])* $name:ident: $xeon:expr, $modern:expr;)*) => {
        /// What things cost, in picoseconds.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
        pub struct Costs {
            $($(#[$about])* pub $name: Picos,)*
        }

        const XEON: Costs = Costs { $($name: $xeon,)* };
        const MODERN: Costs = Costs { $($name: $modern,)* };
    };
}

costs! {
    /// A simple instruction.
    instruction: 700, 200;
    /// A load or store that finds its line in the CPU's own cache.
    hit: 1_400, 1_000;
    /// A load of a line that another CPU has written.
    read_transfer: 162_400, 54_400;
    /// A store to a line that others have: it goes through the store buffer, so less than a load.
    write_transfer: 63_100, 20_000;
    /// An atomic read-modify-write of a line in the own cache.
    atomic: 58_200, 7_000;
    /// The same, of a line that others have.
    atomic_transfer: 113_200, 47_500;
    /// Taking and releasing a lock in the own cache.
    lock: 163_700, 15_400;
    /// The same, of a lock that another CPU held last.
    lock_transfer: 226_800, 101_900;
    /// A load of a line that a CPU on another socket has written.
    // Of the Xeon: one bus, all CPUs are as far from each other.
    far_read_transfer: 162_400, 294_100;
    /// Taking and releasing a lock that a CPU on another socket held last.
    far_lock_transfer: 226_800, 442_900;
    /// Entry and exit of an interrupt.
    interrupt: 700 * CYCLE, 500 * PICOS;
    /// What a tick does besides what the engine does in it.
    tick: 2_800 * CYCLE, 1_000 * PICOS;
    /// Sending an inter-CPU interrupt.
    ipi_send: 400 * CYCLE, 200 * PICOS;
    /// From sending it to its arrival.
    ipi_latency: 700 * CYCLE, 1_000 * PICOS;
    /// Passing through the scheduler, which finds that no other task wants to run.
    schedule: 700 * CYCLE, 300 * PICOS;
    /// Switching from one task to another, cold caches included.
    context_switch: 2_800 * CYCLE, 1_200 * PICOS;
    /// Making a task runnable.
    wake_up: 1_050 * CYCLE, 800 * PICOS;
    /// Entry and exit of a softirq or tasklet.
    softirq: 210 * CYCLE, 100 * PICOS;
    /// Entering and leaving an engine's function.
    engine: 20 * 700, 20 * 200;
    /// Running one callback whose data is in the own cache, and freeing the memory.
    callback: 350 * CYCLE, 100 * PICOS;
    /// What it costs more if the data is in another CPU's cache.
    callback_transfer: 2 * 162_400, 2 * 54_400;
}

impl Costs {
    /// The names of the presets.
    pub const NAMES: [&'static str; 2] = ["modern", "p3-xeon-700mhz"];

    /// A preset by its name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "modern" => Some(Self::modern()),
            "p3-xeon-700mhz" => Some(Self::p3_xeon_700mhz()),
            _ => None,
        }
    }

    /// A 4- or 8-CPU 700 MHz Pentium III Xeon.
    ///
    /// Memory and locks after McKenney (Linux Kernel Scalability: Using the Right Tool for the Job,
    /// linux.conf.au 2005): a modified line comes over the memory's bus, so a load of one costs
    /// what main memory costs (162.4 ns); a blind store saves the difference of the two blind
    /// compare-and-swaps (170.4 - 107.3). Interrupts, switches and callbacks are our estimates, in
    /// cycles: interrupt 700, tick 2,800, IPI 400 to send and 700 to arrive, `schedule()` 700,
    /// context switch 2,800, softirq 210, callback 350.
    pub const fn p3_xeon_700mhz() -> Self {
        XEON
    }

    /// The same, where interrupts, switches and callbacks, which are our estimates, take this part
    /// of it, in per cent.
    pub(crate) fn with_estimates(self, percent: u64) -> Self {
        let part = |cost| cost * percent / 100;
        Self {
            interrupt: part(self.interrupt),
            tick: part(self.tick),
            ipi_send: part(self.ipi_send),
            ipi_latency: part(self.ipi_latency),
            schedule: part(self.schedule),
            context_switch: part(self.context_switch),
            wake_up: part(self.wake_up),
            softirq: part(self.softirq),
            callback: part(self.callback),
            ..self
        }
    }

    /// The same, where it takes this part of it to enter and leave an engine's function.
    pub(crate) fn with_engine(self, percent: u64) -> Self {
        Self { engine: self.engine * percent / 100, ..self }
    }

    /// A server of today.
    ///
    /// Memory and locks after perfbook's Xeon 8176 (same CPU: compare-and-swap 7.0 ns, lock 15.4
    /// ns; off core: blind 47.5 ns, 101.9 ns; off socket: blind 148.8 ns, 442.9 ns). The rest are
    /// our estimates for such a machine: interrupt 0.5 us, tick 1 us, IPI 0.2 us to send and 1 us
    /// to arrive, `schedule()` 0.3 us, context switch 1.2 us, wake-up 0.8 us, softirq 0.1 us,
    /// callback 0.1 us.
    pub const fn modern() -> Self {
        MODERN
    }

    /// An atomic read-modify-write of a line that a CPU on another socket has written: what a lock
    /// there costs beyond a load.
    pub(crate) fn far_atomic_transfer(&self) -> Picos {
        self.far_lock_transfer.saturating_sub(self.far_read_transfer).max(self.atomic_transfer)
    }

    /// A machine that was measured; what was not measured is as in [`Costs::modern`].
    ///
    /// A wake-up and a switch are what was measured without the system calls in it; a callback is
    /// half of what allocating and freeing takes. What a `membarrier` takes longer beside a thread
    /// that runs is the way of an interrupt: sent, on its way, handled, and its answer read.
    pub const fn measured(measured: &Measured) -> Self {
        let mut costs = Self::modern();
        costs.instruction = measured.instruction;
        costs.engine = 20 * measured.instruction;
        costs.hit = measured.hit;
        costs.read_transfer = measured.swap_transfer.saturating_sub(measured.blind_swap_transfer);
        costs.write_transfer = measured.atomic_transfer.saturating_sub(measured.atomic);
        costs.atomic = measured.atomic;
        costs.atomic_transfer = measured.atomic_transfer;
        costs.lock = measured.lock;
        costs.lock_transfer =
            measured.lock + measured.atomic_transfer.saturating_sub(measured.atomic);
        costs.callback_transfer = 2 * costs.read_transfer;
        // One socket is measured.
        costs.far_read_transfer = costs.read_transfer;
        costs.far_lock_transfer = costs.lock_transfer;
        let Some(kernel) = measured.kernel else { return costs };
        costs.interrupt = kernel.interrupt;
        let there_and_back = kernel
            .membarrier_beside_reader
            .saturating_sub(kernel.membarrier)
            .saturating_sub(kernel.interrupt + costs.read_transfer);
        if costs.ipi_send > there_and_back / 2 {
            costs.ipi_send = there_and_back / 2;
        }
        costs.ipi_latency = there_and_back - costs.ipi_send;
        costs.context_switch = kernel.switch.saturating_sub(2 * kernel.system_call);
        costs.wake_up = kernel.wake_up.saturating_sub(kernel.system_call);
        costs.callback = kernel.allocate / 2;
        costs
    }
}

/// What `rcu costs` measures of a machine, by the names that it has there, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Measured {
    /// `instruction`.
    pub instruction: Picos,
    /// `l1_hit`.
    pub hit: Picos,
    /// `atomic_increment`.
    pub atomic: Picos,
    /// `atomic_increment_cache_transfer`.
    pub atomic_transfer: Picos,
    /// `cmpxchg_blind_cache_transfer`.
    pub blind_swap_transfer: Picos,
    /// `cmpxchg_cache_transfer_and_invalidate`.
    pub swap_transfer: Picos,
    /// `cpu_local_lock`.
    pub lock: Picos,
    /// The kernel and its threads; where one of these could not be measured, none.
    pub kernel: Option<MeasuredKernel>,
}

/// The part of [`Measured`] that is the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MeasuredKernel {
    /// `membarrier`: alone.
    pub membarrier: Picos,
    /// `membarrier_beside_reader`.
    pub membarrier_beside_reader: Picos,
    /// `interrupt`.
    pub interrupt: Picos,
    /// `system_call`.
    pub system_call: Picos,
    /// `pause`.
    pub pause: Picos,
    /// `allocate`, and free.
    pub allocate: Picos,
    /// `switch`: a wake-up, a sleep and a switch.
    pub switch: Picos,
    /// `wake_up`: what the waker pays, on another CPU.
    pub wake_up: Picos,
    /// `wake_up_latency`.
    pub wake_up_latency: Picos,
    /// `sleep_overrun`.
    pub sleep_overrun: Picos,
    /// `thread_start`.
    pub thread_start: Picos,
}

impl Measured {
    /// Made up, for tests.
    #[cfg(test)]
    pub(crate) const EXAMPLE: Self = Self {
        instruction: 250,
        hit: 1_500,
        atomic: 6_000,
        atomic_transfer: 50_000,
        blind_swap_transfer: 55_000,
        swap_transfer: 105_500,
        lock: 16_000,
        kernel: Some(MeasuredKernel {
            membarrier: 600_000,
            membarrier_beside_reader: 4_000_000,
            interrupt: 1_500_000,
            system_call: 120_000,
            pause: 40_000,
            allocate: 30_000,
            switch: 1_900_000,
            wake_up: 1_300_000,
            wake_up_latency: 5_000_000,
            sleep_overrun: 60_000_000,
            thread_start: 30_000_000,
        }),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_costs_more_than_a_hit() {
        for name in Costs::NAMES {
            let costs = Costs::named(name).unwrap();
            assert!(costs.read_transfer > costs.hit, "{name}");
            assert!(costs.write_transfer > costs.hit, "{name}");
            assert!(costs.atomic_transfer > costs.atomic, "{name}");
            assert!(costs.lock_transfer > costs.lock, "{name}");
            assert!(costs.far_read_transfer >= costs.read_transfer, "{name}");
            assert!(costs.far_lock_transfer >= costs.lock_transfer, "{name}");
        }
        assert_eq!(Costs::named("abacus"), None);
    }

    #[test]
    fn parts_of_what_was_measured_add_up_to_it() {
        let measured = Measured::EXAMPLE;
        let kernel = measured.kernel.unwrap();
        let costs = Costs::measured(&measured);
        let answer = costs.ipi_send + costs.ipi_latency + costs.interrupt + costs.read_transfer;
        assert_eq!(kernel.membarrier + answer, kernel.membarrier_beside_reader);
        assert_eq!(costs.context_switch + 2 * kernel.system_call, kernel.switch);
        assert_eq!(costs.wake_up + kernel.system_call, kernel.wake_up);
        let quick = MeasuredKernel { membarrier_beside_reader: 0, switch: 0, wake_up: 0, ..kernel };
        let costs = Costs::measured(&Measured { kernel: Some(quick), ..measured });
        assert_eq!((costs.ipi_send, costs.ipi_latency, costs.context_switch), (0, 0, 0));
        let memory_only = Costs::measured(&Measured { kernel: None, ..measured });
        assert_eq!(memory_only.context_switch, Costs::modern().context_switch);
        assert_eq!(memory_only.lock, measured.lock);
    }
}
