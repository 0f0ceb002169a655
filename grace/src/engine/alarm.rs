//! Who looks again, and when: a processor on its tick, or the timer if that has none.
//!
//! A tick comes anyway, so a look on it costs little; the timer wakes a thread. So the processor
//! that looked keeps the alarm, and hands it to the timer when it goes where no ticks are.

use super::{Access, Host, Line};

/// What is set, at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Alarm {
    Off,
    /// After so many more ticks of this processor.
    Tick {
        cpu: usize,
        jiffies: u32,
    },
    /// The timer was asked for so many jiffies.
    Timer {
        jiffies: u32,
    },
}

impl Alarm {
    /// Sets it on `cpu`, which `has_ticks` or not, unless it is set for as early as that already.
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
        host.touch(Line::Mailbox(cpu), Access::Write);
        *self = Self::Tick { cpu, jiffies };
    }

    /// A tick of `cpu`: answers whether it keeps the alarm, and whether that went off.
    pub(super) fn tick(&mut self, cpu: usize, host: &mut dyn Host) -> (bool, bool) {
        host.touch(Line::Mailbox(cpu), Access::Read);
        match *self {
            Self::Tick { cpu: keeper, jiffies } if keeper == cpu => {
                host.touch(Line::Mailbox(cpu), Access::Write);
                let goes_off = jiffies <= 1;
                *self = if goes_off { Self::Off } else { Self::Tick { cpu, jiffies: jiffies - 1 } };
                (true, goes_off)
            }
            _ => (false, false),
        }
    }

    /// The timer: answers how many jiffies it was asked for; `None` if it was not this alarm.
    pub(super) fn timer(&mut self) -> Option<u32> {
        let Self::Timer { jiffies } = *self else { return None };
        *self = Self::Off;
        Some(jiffies)
    }

    /// `cpu` has no more ticks: if it keeps the alarm, the timer takes it.
    pub(super) fn hand_to_timer(&mut self, cpu: usize, host: &mut dyn Host) {
        match *self {
            Self::Tick { cpu: keeper, jiffies } if keeper == cpu => {
                host.timer(jiffies);
                *self = Self::Timer { jiffies };
            }
            _ => {}
        }
    }
}
