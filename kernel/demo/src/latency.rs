//! The test: how long a thread of hart 0 waits for grace periods while all other harts are idle, or
//! the last one runs a thread of the kernel all the time. In ticks; where the emulator counts
//! instructions, also in these: it has one each 8 ns, of all harts together.

use core::sync::atomic::Ordering::*;

use kernel::Refused;

use crate::hart::{HZ, TICK, this};
use crate::platform::RCU;
use crate::sbi::{self, say};
use crate::thread::{self, When};
use crate::{all_harts, parameters, watch};

/// Waits in each second that the test is said to last.
const ROUNDS: u64 = 10;

/// Ticks that a wait may take where instructions are counted: somewhat more than was measured on 2
/// to 8 harts. There is no limit where the emulator's threads may be kept off their CPUs.
const SYNCHRONIZE: u64 = 5;
/// While all others are idle, and while one is busy.
const EXPEDITED: [u64; 2] = [1, 4];

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
    let rounds = ROUNDS * parameters().seconds;
    watch::END.store(sbi::time() + 2 * rounds * 40 * TICK, Relaxed);
    let expedited = EXPEDITED[parameters().test as usize - 1];
    let are_ok = [
        measure("synchronize", SYNCHRONIZE, || RCU.synchronize()),
        measure("expedited", expedited, || RCU.synchronize_expedited()),
    ];
    sbi::power_off(are_ok == [true, true]);
}

/// Returns whether no wait was longer than so many ticks.
fn measure(name: &str, ticks_max: u64, wait: impl Fn() -> Result<(), Refused>) -> bool {
    let (mut least, mut most, mut sum) = (u64::MAX, 0, 0);
    let rounds = ROUNDS * parameters().seconds;
    for _ in 0..rounds {
        // At any time between two ticks of hart 0, when all that was before is over.
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
    let is_ok = parameters().seed == 0 || most <= ticks_max * TICK;
    if !is_ok {
        say!("wrong: {name} takes more than {ticks_max} ticks");
    }
    is_ok
}
