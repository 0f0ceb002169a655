//! The test: who holds up a grace period and for how long, how many callbacks wait in a flood, and
//! how long interrupts stay off. All harts but the first are idle, and the last one has a load.
//! Prints a row of a table for each load.
//!
//! In ticks, and in instructions: the emulator has one each 8 ns, of all harts together. (Where
//! QEMU 7.2 counts instructions, a hart that spins uses up the time of those behind it.)

use core::fmt::{self, Display};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};

use conformance::torture::spin;
use conformance::{Machine, Rcu, What};

use crate::all_harts;
use crate::hart::{self, SECOND, TICK, this};
use crate::platform::{Board, Design, RCU};
use crate::sbi::{self, say};
use crate::thread::{self, When};

type Headed = <Design as Rcu>::Head;

/// What the last hart does, in this order. The first load is on all harts but hart 0.
const LOADS: [&str; 5] = [
    "a client, as all others",
    "busy in the kernel",
    "busy in user mode",
    "idle",
    "idle, and a flood",
];
const CLIENTS: usize = 0;
const BUSY: usize = 1;
const USER: usize = 2;
const FLOOD: usize = 4;
/// Callbacks of a flood.
const FLOODED: usize = 20_000;
const ROUNDS: u64 = 10;
/// A grace period that lasts longer is ended by force: each hart is made to switch threads.
const LIMIT: u64 = 500 * TICK;

/// Ticks that `synchronize` and an expedited wait may take with our crate: somewhat more than was
/// measured on 2 to 8 harts. Beside clients there is no limit.
const fn limits(load: usize) -> [u64; 2] {
    match load {
        CLIENTS => [LIMIT; 2],
        BUSY => [4, 4],
        _ => [4, 2],
    }
}

/// A place in [`LOADS`].
static LOAD: AtomicUsize = AtomicUsize::new(CLIENTS);
/// Callbacks that have run, and when the last one did.
pub(crate) static RAN: AtomicU64 = AtomicU64::new(0);
static RAN_AT: AtomicU64 = AtomicU64::new(0);
pub(crate) static HEADS: [Headed; 50_000] = [const { Design::HEAD }; 50_000];

pub(crate) unsafe fn ran(_: NonNull<Headed>) {
    RAN_AT.store(sbi::time(), Relaxed);
    // Release: pairs with the Acquire of `Found::of`; the head may be queued again.
    RAN.fetch_add(1, Release);
}

/// A thread of each hart; that of the last one is the load. It is in no section, and preempted by
/// each tick.
pub(crate) fn load() -> ! {
    let is_last = this().id + 1 == all_harts();
    loop {
        match LOAD.load(Relaxed) {
            CLIENTS if this().id != 0 => client(),
            BUSY if is_last => core::hint::spin_loop(),
            USER if is_last => Board::run_program(1_000_000),
            _ => thread::sleep(When::Never),
        }
    }
}

/// A burst of a client of a file server, as dbench's in the paper of 2003, of 50 ms on average:
/// 70 % of it in sections of 100 us. No tick preempts it, as none did in a kernel of that year; an
/// interrupt may between two sections. Then it blocks.
fn client() {
    const MS: u64 = SECOND / 1_000;
    let until = sbi::time() + Board::roll(100 * MS);
    this().is_lazy.store(true, Relaxed);
    while sbi::time() < until {
        if Board::roll(10) < 7 {
            (0..10).for_each(|_| {
                let _section = RCU.read();
                spin::<Board>(MS / 10);
            });
        } else {
            // Of about 1 ms.
            Board::run_program(62_500);
        }
    }
    this().is_lazy.store(false, Relaxed);
    thread::sleep(When::At(sbi::time() + MS / 5));
}

/// Says what it has measured.
pub(crate) fn main() -> ! {
    let harts = all_harts();
    let design = core::any::type_name::<Design>().rsplit("::").next().unwrap_or_default();
    let all = || (0..harts).map(|hart| &hart::of(hart).stretches);
    let mut is_ok = true;
    for (load, name) in LOADS.iter().enumerate() {
        LOAD.store(load, Relaxed);
        thread::sleep_ticks(100);
        all().for_each(hart::Stretches::forget);
        let found = Found::of(if load == FLOOD { FLOODED } else { 1 }, harts);
        let waits = [
            mean(What::Synchronize, limits(load)[0], || RCU.synchronize()),
            mean(What::Expedited, limits(load)[1], || RCU.synchronize_expedited()),
        ];
        // Beside a busy hart the emulator stops the others wherever they are.
        let longest = |of: fn(&hart::Stretches) -> &AtomicU64| {
            all().filter(|_| load > USER).map(|hart| of(hart).load(Relaxed)).max()
        };
        is_ok &= waits.iter().all(|(_, is_ok)| *is_ok);
        say!(
            "| {design} | {name} | {} | {} | {} | {} | {} | {} | {} |",
            Ticks(found.took),
            Ticks(waits[0].0),
            Instructions(waits[1].0),
            found.holdouts,
            found.waiting,
            Instructions(longest(|of| &of.off)),
            Instructions(longest(|of| &of.switch)),
        );
    }
    sbi::power_off(is_ok);
}

/// At any time between two ticks of hart 0, when all that was before is over. Returns it.
fn begin() -> u64 {
    thread::sleep(When::At(sbi::time() + 20 * TICK + this().roll(TICK)));
    sbi::time()
}

/// What callbacks met with that were queued as fast as can be.
struct Found {
    /// From the first to the end of the last, on average; `None`: the grace period was ended by
    /// force.
    took: Option<u64>,
    /// Harts that still held it up after three ticks.
    holdouts: usize,
    /// The most that waited at once.
    waiting: u64,
}

impl Found {
    fn of(callbacks: usize, harts: usize) -> Self {
        let (mut sum, mut holdouts, mut waiting, mut is_forced) = (0, 0, 0, false);
        for _ in 0..ROUNDS {
            let (begun, ran_before) = (begin(), RAN.load(Relaxed));
            let ran_here = || RAN.load(Acquire) - ran_before;
            for (queued, head) in HEADS.iter().enumerate().take(callbacks) {
                // SAFETY: it stays, and its callback before has run.
                unsafe { RCU.call(NonNull::from(head), ran) };
                waiting = waiting.max(queued as u64 + 1 - ran_here());
            }
            while ran_here() != callbacks as u64 {
                thread::sleep_ticks(1);
                let is_late = sbi::time() - begun > 3 * TICK && ran_here() == 0;
                if is_late && !is_forced {
                    holdouts = (0..harts).filter(|hart| RCU.is_holdout(*hart)).count();
                }
                is_forced |= sbi::time() - begun > LIMIT;
                if is_forced {
                    thread::switch_all();
                }
            }
            sum += RAN_AT.load(Relaxed) - begun;
            if is_forced {
                break;
            }
        }
        Self { took: (!is_forced).then_some(sum / ROUNDS), holdouts, waiting }
    }
}

/// How long a wait takes, if there is such a one; and whether no wait of our crate takes longer
/// than so many ticks.
fn mean(what: What, ticks_max: u64, wait: impl Fn()) -> (Option<u64>, bool) {
    if Design::LACKS.contains(&what) {
        return (None, true);
    }
    let (mut sum, mut most) = (0, 0);
    for _ in 0..ROUNDS {
        let begun = begin();
        wait();
        let took = sbi::time() - begun;
        (sum, most) = (sum + took, most.max(took));
    }
    let is_ok = cfg!(feature = "rival") || most <= ticks_max * TICK;
    if !is_ok {
        say!("wrong: {what:?} takes more than {ticks_max} ticks");
    }
    (Some(sum / ROUNDS), is_ok)
}

/// With two digits; a dash if it never ended, or is never done.
struct Ticks(Option<u64>);

impl Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(time) = self.0 else { return f.write_str("–") };
        write!(f, "{}.{:02}", time / TICK, time % TICK * 100 / TICK)
    }
}

struct Instructions(Option<u64>);

impl Display for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(time) = self.0 else { return f.write_str("–") };
        (time * 100 / 8).fmt(f)
    }
}
