//! The test: how long a thread of hart 0 waits for grace periods while all other harts are idle, or
//! the last one runs a thread of the kernel all the time. In ticks; where the emulator counts
//! instructions, also in these: it has one each 8 ns, of all harts together.

use kernel::Refused;

use crate::hart::{HZ, TICK, this};
use crate::platform::RCU;
use crate::sbi::{self, say};
use crate::thread::{self, When};
use crate::{all_harts, parameters};

/// Waits in each second that the test is said to last.
const ROUNDS: u64 = 10;

/// What keeps the last hart busy: in no section, and preempted by each tick. (Where QEMU 7.2 counts
/// instructions, a hart that spins uses up the time of those behind it.)
pub(crate) fn busy() -> ! {
    if this().id + 1 != all_harts() {
        thread::sleep(When::Never);
    }
    loop {
        core::hint::spin_loop();
    }
}

/// Says what it has measured.
pub(crate) fn main() -> ! {
    let harts = all_harts();
    let name = if parameters().test == 1 { "idle" } else { "busy" };
    say!("{name}: {harts} harts, {HZ} Hz, seed {}", parameters().seed);
    measure("synchronize", || RCU.synchronize());
    measure("expedited", || RCU.synchronize_expedited());
    sbi::power_off(true);
}

fn measure(name: &str, wait: impl Fn() -> Result<(), Refused>) {
    let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
    let rounds = ROUNDS * parameters().seconds;
    for _ in 0..rounds {
        // At any time between two ticks, when all that was before is over.
        thread::sleep(When::At(sbi::time() + 20 * TICK + this().roll(TICK)));
        let begun = sbi::time();
        wait().expect("in no section");
        let took = sbi::time() - begun;
        (least, most, sum) = (least.min(took), most.max(took), sum + took);
    }
    for (which, time) in [("least", least), ("mean", sum / rounds), ("most", most)] {
        let (ticks, hundredths) = (time / TICK, time % TICK * 100 / TICK);
        say!("{name:>12} {which:>5}: {ticks}.{hundredths:02} ticks");
        if parameters().seed != 0 {
            say!("{:>18}: {} instructions", "", time * 100 / 8);
        }
    }
}
