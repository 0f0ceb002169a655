//! Which CPU scans next, and when: on its tick, or the timer where there are none.
//!
//! A tick comes anyway, so a look on it costs little; the timer wakes a thread. So the CPU
//! that looked keeps the alarm. The timer is set a little later all the same, and put off each
//! time that the tick came first: a CPU may be in the kernel without ticks (`nohz_full`).

use super::{Access, Host, Line};

/// How much later than the tick the timer is set.
const LATER_JIFFIES: u32 = 2;

/// What is set, at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Alarm {
    Off,
    /// After so many more ticks of this CPU, or of the timer's jiffies.
    Tick {
        cpu: usize,
        jiffies: u32,
        timer_jiffies: u32,
    },
    /// The timer was asked for so many jiffies.
    Timer {
        jiffies: u32,
    },
}

impl Alarm {
    /// Sets it on `cpu`, which `has_ticks` or surely has not, unless it is set for as early as
    /// that.
    pub(super) fn set(&mut self, cpu: usize, has_ticks: bool, jiffies: u32, host: &mut dyn Host) {
        let jiffies = jiffies.max(1);
        let cpu = match *self {
            Self::Tick { jiffies: set, .. } | Self::Timer { jiffies: set } if set <= jiffies => {
                return;
            }
            Self::Tick { cpu, .. } => cpu,
            Self::Off if has_ticks => cpu,
            _ => {
                host.timer(jiffies);
                *self = Self::Timer { jiffies };
                return;
            }
        };
        let timer_jiffies = jiffies.saturating_add(LATER_JIFFIES);
        host.touch(Line::Mailbox(cpu), Access::Write);
        host.timer(timer_jiffies);
        *self = Self::Tick { cpu, jiffies, timer_jiffies };
    }

    /// A tick of `cpu`: returns whether it keeps the alarm, and whether that went off.
    pub(super) fn tick(&mut self, cpu: usize, host: &mut dyn Host) -> (bool, bool) {
        host.touch(Line::Mailbox(cpu), Access::Read);
        match self {
            Self::Tick { cpu: keeper, jiffies, .. } if *keeper == cpu => {
                host.touch(Line::Mailbox(cpu), Access::Write);
                if *jiffies > 1 {
                    *jiffies -= 1;
                    return (true, false);
                }
                *self = Self::Off;
                (true, true)
            }
            _ => (false, false),
        }
    }

    /// The timer: returns how many jiffies it was asked for; `None` if the alarm is off.
    pub(super) fn timer(&mut self) -> Option<u32> {
        let jiffies = match *self {
            Self::Off => return None,
            Self::Tick { timer_jiffies, .. } => timer_jiffies,
            Self::Timer { jiffies } => jiffies,
        };
        *self = Self::Off;
        Some(jiffies)
    }

    /// No CPU needs it any more.
    pub(super) fn turn_off(&mut self, host: &mut dyn Host) {
        host.timer_off();
        *self = Self::Off;
    }

    /// Whether `cpu` keeps it.
    pub(super) fn is_kept_by(&self, cpu: usize) -> bool {
        matches!(*self, Self::Tick { cpu: keeper, .. } if keeper == cpu)
    }

    /// Its keeper has no more ticks for sure: CPU `to`, which may have some, takes it, or else the
    /// timer.
    pub(super) fn hand_over(&mut self, to: Option<usize>, host: &mut dyn Host) {
        let Self::Tick { jiffies, .. } = *self else { return };
        *self = Self::Off;
        self.set(to.unwrap_or(0), to.is_some(), jiffies, host);
    }
}
