//! Any of the delay functions, chosen at run time by the simulator or the explorer.

use super::adaptive::AdaptiveDelay;
use super::delay::{Delay, Published, Situation, Wait};

/// A delay function, chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnyDelay {
    /// One of the kernel's, or one with other parameters.
    Published(Published),
    /// Ours.
    Adaptive(AdaptiveDelay),
}

impl Delay for AnyDelay {
    fn extra_check(&self, count: &mut u32, now: Situation) -> bool {
        match self {
            Self::Published(delay) => delay.extra_check(count, now),
            Self::Adaptive(delay) => delay.extra_check(count, now),
        }
    }

    fn asks_after_each_check(&self) -> bool {
        match self {
            Self::Published(delay) => delay.asks_after_each_check(),
            Self::Adaptive(delay) => delay.asks_after_each_check(),
        }
    }

    fn spin_us(&self, is_last: bool) -> u32 {
        match self {
            Self::Published(delay) => delay.spin_us(is_last),
            Self::Adaptive(delay) => delay.spin_us(is_last),
        }
    }

    fn first_wait(&self, count: &mut u32, now: Situation) -> Wait {
        match self {
            Self::Published(delay) => delay.first_wait(count, now),
            Self::Adaptive(delay) => delay.first_wait(count, now),
        }
    }

    fn wait(&self, count: &mut u32, now: Situation) -> Wait {
        match self {
            Self::Published(delay) => delay.wait(count, now),
            Self::Adaptive(delay) => delay.wait(count, now),
        }
    }

    fn callback_delay_jiffies(&self, count: &mut u32, now: Situation) -> u32 {
        match self {
            Self::Published(delay) => delay.callback_delay_jiffies(count, now),
            Self::Adaptive(delay) => delay.callback_delay_jiffies(count, now),
        }
    }

    fn runs_per_jiffy_max(&self) -> u32 {
        match self {
            Self::Published(delay) => delay.runs_per_jiffy_max(),
            Self::Adaptive(delay) => delay.runs_per_jiffy_max(),
        }
    }
}
