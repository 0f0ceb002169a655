//! The library's costs on the simulated machine.

use crate::cost::{self, Measured, PICOS, Picos};
use crate::events::Time;

/// What things cost, in picoseconds but for the timer slack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Costs {
    /// Memory, locks, interrupts, switches, callbacks.
    pub machine: cost::Costs,
    /// Entry and exit of a system call that does next to nothing.
    pub syscall: Picos,
    /// Making a thread of the own CPU runnable, besides the system call.
    pub wake_up_near: Picos,
    /// A `membarrier` that interrupts no CPU.
    pub membarrier: Picos,
    /// A `pause` instruction.
    pub relax: Picos,
    /// From the wake-up of a thread on an idle CPU to its first instruction there, without a switch
    /// to it from another thread.
    pub idle_exit: Picos,
    /// Starting a thread.
    pub start: Picos,
    /// How much later than asked for a thread's timer goes off, in nanoseconds.
    pub timer_slack_ns: Time,
}

impl Costs {
    /// A server of today: [`cost::Costs::modern`], the timer slack that Linux gives threads by
    /// default (`prctl(2)`, `PR_SET_TIMERSLACK`: 50 us), and our estimates for the rest: a system
    /// call 0.1 us, which is what a `membarrier` costs besides its interrupts, a `pause` 40 ns, an
    /// idle CPU awake after 2 us, a thread started in 15 us.
    pub const fn modern() -> Self {
        Self {
            machine: cost::Costs::modern(),
            syscall: 100 * PICOS,
            wake_up_near: cost::Costs::modern().wake_up,
            membarrier: 100 * PICOS,
            relax: 40 * PICOS,
            idle_exit: 2_000 * PICOS,
            start: 15_000 * PICOS,
            timer_slack_ns: 50_000,
        }
    }

    /// A machine that was measured; what was not measured is as in [`Costs::modern`]. None if only
    /// its memory was.
    ///
    /// A switch was measured together with the wake-up of a thread on the same CPU, which costs
    /// nothing more here. A wake-up on another CPU was, until the thread runs, on one where it had
    /// run last: without a switch.
    pub fn measured(measured: &Measured) -> Option<Self> {
        let kernel = measured.kernel?;
        let late = kernel.sleep_overrun.saturating_sub(kernel.wake_up_latency + kernel.system_call);
        Some(Self {
            machine: cost::Costs::measured(measured),
            syscall: kernel.system_call,
            wake_up_near: 0,
            membarrier: kernel.membarrier,
            relax: kernel.pause,
            idle_exit: kernel.wake_up_latency,
            start: kernel.thread_start,
            timer_slack_ns: late / PICOS,
        })
    }

    /// A request: the machine's lock, which another CPU had, and a step.
    pub(super) const fn request_ns(&self) -> Time {
        ns(self.machine.lock_transfer + self.machine.engine)
    }

    /// A `membarrier` that interrupts so many other CPUs.
    pub(super) const fn membarrier_ns(&self, others: u64) -> Time {
        let machine = &self.machine;
        let answer = match others {
            0 => 0,
            _ => machine.ipi_latency + machine.interrupt + machine.read_transfer,
        };
        ns(self.membarrier + others * machine.ipi_send + answer)
    }

    /// Showing all readers a new number.
    pub(super) const fn announce_ns(&self) -> Time {
        ns(self.machine.write_transfer + self.machine.lock)
    }

    /// Looking at so many readers, of which so many have written since; under two locks.
    pub(super) const fn scan_ns(&self, readers: u64, written: u64) -> Time {
        let machine = &self.machine;
        let line = 2 * machine.instruction + machine.hit;
        // On a busy machine both are measured with noise.
        let farther = machine.read_transfer.saturating_sub(machine.hit);
        ns(2 * machine.lock + readers * line + written * farther)
    }

    /// Looking at the holdouts anew after a `pause`, a step each.
    pub(super) const fn rescan_ns(&self, holdouts: u64) -> Time {
        let most = ns(self.relax + self.machine.engine) + self.scan_ns(holdouts, 0);
        if most == 0 { 1 } else { most }
    }

    /// Marking so many holdouts.
    pub(super) const fn mark_ns(&self, holdouts: u64) -> Time {
        ns(self.machine.lock + holdouts * self.machine.write_transfer)
    }

    /// Waking a thread, of the own CPU or of another one: what the waker pays.
    pub(super) const fn wake_ns(&self, near: bool) -> Time {
        ns(self.syscall + if near { self.wake_up_near } else { self.machine.wake_up })
    }

    /// A thread without work passes through the scheduler.
    pub(super) const fn yield_ns(&self) -> Time {
        ns(self.syscall + self.machine.schedule)
    }

    /// Registering or unregistering: the registry's lock.
    pub(super) const fn register_ns(&self) -> Time {
        ns(self.machine.lock_transfer + self.machine.atomic)
    }

    /// Queueing so many callbacks: some ten instructions each.
    pub(super) const fn queue_ns(&self, callbacks: u64) -> Time {
        ns(callbacks * (10 * self.machine.instruction + 2 * self.machine.hit))
    }

    /// Charging a domain: two atomic operations on lines that others have.
    pub(super) const fn charge_ns(&self) -> Time {
        ns(2 * self.machine.atomic_transfer)
    }

    /// Running one callback.
    pub(super) const fn callback_ps(&self, own: bool) -> Picos {
        let machine = &self.machine;
        if own { machine.callback } else { machine.callback + machine.callback_transfer }
    }
}

pub(super) const fn ns(picos: Picos) -> Time {
    picos.div_ceil(PICOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_another_cpu_that_was_measured_as_near_as_a_hit_costs_no_more() {
        let mut costs = Costs::modern();
        costs.machine.read_transfer = costs.machine.hit / 2;
        assert_eq!(costs.scan_ns(8, 8), costs.scan_ns(8, 0));
    }
}
