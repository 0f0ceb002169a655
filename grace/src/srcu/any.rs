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

/// What the one says that it is.
macro_rules! ask {
    ($any:ident, $delay:ident => $says:expr) => {
        match $any {
            AnyDelay::Published($delay) => $says,
            AnyDelay::Adaptive($delay) => $says,
        }
    };
}

impl Delay for AnyDelay {
    fn extra_check(&self, count: &mut u32, now: Situation) -> bool {
        ask!(self, delay => delay.extra_check(count, now))
    }

    fn asks_after_each_check(&self) -> bool {
        ask!(self, delay => delay.asks_after_each_check())
    }

    fn spin_us(&self, is_last: bool) -> u32 {
        ask!(self, delay => delay.spin_us(is_last))
    }

    fn first_wait(&self, count: &mut u32, now: Situation) -> Wait {
        ask!(self, delay => delay.first_wait(count, now))
    }

    fn wait(&self, count: &mut u32, now: Situation) -> Wait {
        ask!(self, delay => delay.wait(count, now))
    }

    fn callback_delay_jiffies(&self, count: &mut u32, now: Situation) -> u32 {
        ask!(self, delay => delay.callback_delay_jiffies(count, now))
    }

    fn runs_per_jiffy_max(&self) -> u32 {
        ask!(self, delay => delay.runs_per_jiffy_max())
    }
}
