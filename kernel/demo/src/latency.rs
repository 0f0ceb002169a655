//! The test: who holds up a grace period and for how long, how many callbacks wait in a flood, and
//! how long interrupts stay off. Hart 0 waits. First all others have clients; then all are idle but
//! the last one, which has a load. Prints a row of a table for each load, by the same code for each
//! design of RCU.
//!
//! In ticks, and in instructions: the emulator has one each 8 ns, of all harts together, and its
//! clock a step each 100 ns. (Where QEMU 7.2 counts instructions, a hart that spins uses up the
//! time of those behind it.)

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
use crate::watch;

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
const ROUNDS: usize = 10;
/// A grace period that lasts longer is ended by force: each hart is made to switch threads.
const FORCED: u64 = 500 * TICK;

/// How long `synchronize` and an expedited wait may take with our crate. A scan is due half a tick
/// after the grace period's beginning. Hart 0's next tick does it, and if it finds the last hart in
/// the kernel, the tick after that does another: 2.5 ticks. A hart that is busy in the kernel takes
/// two of its own. An expedited wait asks it to pass its scheduler at once. To that comes the
/// emulator's turn, which ends at a tick: hart 0 has it a tick later. With clients there is no
/// limit, since the times are mostly theirs.
const fn limits(load: usize) -> [u64; 2] {
    match load {
        CLIENTS => [u64::MAX; 2],
        BUSY | USER => [15 * TICK / 4, 9 * TICK / 4],
        _ => [2 * TICK, instructions(10_000)],
    }
}

/// By the machine's clock.
const fn instructions(count: u64) -> u64 {
    count * 8 / 100
}

/// A place in [`LOADS`].
static LOAD: AtomicUsize = AtomicUsize::new(CLIENTS);
/// The clients' time, and how much of it they were in sections.
static CLIENTS_TIME: AtomicU64 = AtomicU64::new(0);
static IN_SECTIONS: AtomicU64 = AtomicU64::new(0);
/// Callbacks that have run, and when the last one did.
pub(crate) static RAN: AtomicU64 = AtomicU64::new(0);
static RAN_AT: AtomicU64 = AtomicU64::new(0);
pub(crate) static HEADS: [Headed; 50_000] = [const { Design::HEAD }; 50_000];

pub(crate) unsafe fn ran(_: NonNull<Headed>) {
    RAN_AT.store(sbi::time(), Relaxed);
    // Release: pairs with the Acquire of `Found::of`; the head may be queued again.
    RAN.fetch_add(1, Release);
}

/// A thread of each hart; that of the last one is the load. But for a
/// client it is in no section, and preempted by each tick.
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

/// A burst of a client of a file server, as dbench's (Arcangeli and others, "Using Read-Copy-Update
/// Techniques for System V IPC in the Linux 2.5 Kernel", 2003): 50 ms on average. It is a chain of
/// ten sections of 100 us, or of programs for 1 ms, all by the clock, which goes on while other
/// harts run. No tick preempts it, as none did in a kernel of that year; an interrupt may between
/// two sections. Then it blocks.
fn client() {
    const MS: u64 = SECOND / 1_000;
    let begun = sbi::time();
    let until = begun + Board::roll(100 * MS);
    this().is_lazy.store(true, Relaxed);
    while sbi::time() < until {
        let since = sbi::time();
        if Board::roll(10) < 7 {
            (0..10).for_each(|_| {
                let _section = RCU.read();
                spin::<Board>(MS / 10);
            });
            IN_SECTIONS.fetch_add(sbi::time() - since, Relaxed);
        } else {
            while sbi::time() < since + MS {
                Board::run_program(3_000);
            }
        }
    }
    this().is_lazy.store(false, Relaxed);
    CLIENTS_TIME.fetch_add(sbi::time() - begun, Relaxed);
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
        watch::END.store(sbi::time() + 10 * SECOND, Relaxed);
        thread::sleep_ticks(100);
        all().for_each(hart::Stretches::forget);
        let found = Found::of(if load == FLOOD { FLOODED } else { 1 }, harts);
        // With a busy hart the emulator stops the others wherever they are, as it does where harts
        // are made to switch.
        let is_calm = load > USER && found.took.1 != 0;
        let longest = |of: fn(&hart::Stretches) -> &AtomicU64| {
            let mut times = Times::NONE;
            if is_calm {
                times.add(all().map(|hart| of(hart).load(Relaxed)).max().unwrap_or(0));
            }
            times
        };
        let [off, switch] = [longest(|of| &of.off), longest(|of| &of.switch)];
        let waits = [
            waits(What::Synchronize, || RCU.synchronize()),
            waits(What::Expedited, || RCU.synchronize_expedited()),
        ];
        for (times, limit) in waits.iter().zip(limits(load)) {
            if times.most() > limit && !cfg!(feature = "rival") {
                say!("wrong: a wait takes more than {limit} of the clock's steps");
                is_ok = false;
            }
        }
        say!(
            "| {design} | {name} | {} | {} | {} | {} | {} | {} | {} |",
            found.took.shown(in_ticks),
            waits[0].shown(in_ticks),
            waits[1].shown(in_instructions),
            found.holdouts,
            found.waiting,
            off.shown(in_instructions),
            switch.shown(in_instructions),
        );
        if load == CLIENTS {
            let [inside, all] = [&IN_SECTIONS, &CLIENTS_TIME].map(|time| time.load(Relaxed));
            say!("clients are in sections for {} % of their time", inside * 100 / all.max(1));
        }
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
    /// From the first to the end of the last; none if a grace period was ended by force.
    took: Times,
    /// The most harts that still held one up after three ticks.
    holdouts: usize,
    /// The most that waited at once.
    waiting: u64,
}

impl Found {
    fn of(callbacks: usize, harts: usize) -> Self {
        let (mut took, mut holdouts, mut waiting) = (Times::NONE, 0, 0);
        for _ in 0..ROUNDS {
            let (begun, ran_before) = (begin(), RAN.load(Relaxed));
            let ran_here = || RAN.load(Acquire) - ran_before;
            for (queued, head) in HEADS.iter().enumerate().take(callbacks) {
                // SAFETY: it stays, and its callback before has run.
                unsafe { RCU.call(NonNull::from(head), ran) };
                waiting = waiting.max(queued as u64 + 1 - ran_here());
            }
            let (mut is_late, mut is_forced) = (false, false);
            while ran_here() != callbacks as u64 {
                thread::sleep_ticks(1);
                let lasts = sbi::time() - begun;
                if lasts >= 3 * TICK && ran_here() == 0 && !is_late {
                    is_late = true;
                    let now = (0..harts).filter(|hart| RCU.is_holdout(*hart)).count();
                    holdouts = holdouts.max(now);
                }
                is_forced |= lasts > FORCED;
                if is_forced {
                    thread::switch_all();
                }
            }
            if is_forced {
                return Self { took: Times::NONE, holdouts, waiting };
            }
            took.add(RAN_AT.load(Relaxed) - begun);
        }
        Self { took, holdouts, waiting }
    }
}

/// How long waits take, if there are such.
fn waits(what: What, wait: impl Fn()) -> Times {
    let rounds = if Design::LACKS.contains(&what) { 0 } else { ROUNDS };
    let mut times = Times::NONE;
    for _ in 0..rounds {
        let begun = begin();
        wait();
        times.add(sbi::time() - begun);
    }
    times
}

/// How long something took each time, by the machine's clock; so many are there.
struct Times([u64; ROUNDS], usize);

impl Times {
    const NONE: Self = Self([0; ROUNDS], 0);

    fn add(&mut self, time: u64) {
        self.0[self.1] = time;
        self.1 += 1;
    }

    fn most(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }

    /// The mean, and if there are several the least and the most; a dash if there is none.
    fn shown<T: Display>(&self, unit: fn(u64) -> T) -> impl Display {
        fmt::from_fn(move |f| match &self.0[..self.1] {
            [] => f.write_str("–"),
            [one] => unit(*one).fmt(f),
            all => {
                let mean = unit(all.iter().sum::<u64>() / all.len() as u64);
                let least = all.iter().fold(u64::MAX, |least, &time| least.min(time));
                write!(f, "{mean} ({}–{})", unit(least), unit(self.most()))
            }
        })
    }
}

/// With two digits.
fn in_ticks(time: u64) -> impl Display {
    fmt::from_fn(move |f| write!(f, "{}.{:02}", time / TICK, time % TICK * 100 / TICK))
}

fn in_instructions(time: u64) -> u64 {
    time * 100 / 8
}
