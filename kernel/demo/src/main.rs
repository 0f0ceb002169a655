//! A kernel for QEMU's board `virt` on riscv64, in supervisor mode on OpenSBI: it runs
//! `quiescence-kernel` for real, and tries to catch it in a mistake.
//!
//! For the author of a kernel, this is where which hook goes:
//!
//! - `cpu_starting`, `cpu_online`: [`hart_main`], before the hart's first section, and when its
//!   threads may run.
//! - `context_switch`: [`thread::schedule`], before the stack is switched, also if it is not.
//! - `irq_enter`, `tick`, `irq_exit`: `trap.rs`, around each handler. The scheduler comes *after*
//!   `irq_exit`.
//! - `user_exit`, `user_enter`: `trap.rs`, first and last of a trap out of user mode.
//! - `idle_enter`, `idle_exit`: [`thread::idle`], around the loop that waits for interrupts.
//! - `has_callbacks`, `run_callbacks`: [`thread::worker`], a thread of each hart.
//! - `cpu_dying`, `cpu_dead`: `hotplug.rs`, by the hart; by another, when the first has stopped.
//! - `nmi_enter`, `nmi_exit`: the torture. Supervisor mode has no NMI, so it is simulated: in a
//!   trap, before its hooks, and by the clock, which hooks read, also under the lock.
//! - What the crate asks of a kernel: `platform.rs`. There `RCU` is the one that the kernel is
//!   built with, as the conformance kit knows it: ours, or a rival's design.
//!
//! A section is [`hart::Section`], which counts a word. The tick stops where `idle_enter` or
//! `irq_exit` says that it may; in user mode it never stops here: it is to preempt the program.
//! Threads stay on their hart. There is one address space, so user mode is a mode of the CPU that
//! protects nothing.
#![no_std]
#![no_main]
#![cfg_attr(
    feature = "rival",
    allow(clippy::let_unit_value, reason = "an interrupt is nothing there")
)]

#[cfg(not(feature = "rival"))]
mod cells;
#[cfg(not(feature = "rival"))]
mod dcache;
#[cfg(not(feature = "rival"))]
mod exit;
mod figures;
#[cfg(not(feature = "rival"))]
mod files;
mod hart;
mod hotplug;
mod latency;
mod lock;
mod platform;
mod rivals;
mod sbi;
#[cfg(not(feature = "rival"))]
mod slab;
#[cfg(not(feature = "rival"))]
mod srcu;
mod thread;
mod torture;
mod trap;
mod watch;

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*, fence};

use conformance::Rcu;
use hart::HARTS;
use platform::RCU;
use sbi::say;
use thread::When;

core::arch::global_asm!(include_str!("entry.s"));

unsafe extern "C" {
    /// Where a hart begins that another one starts.
    fn hart_entry();
}

/// The harts that are online, a bit each.
static UP: AtomicU64 = AtomicU64::new(0);
/// How many there are: known when all have been asked to start.
static THERE: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The hart that has panicked, and one more; 0: none has.
static PANICKED: AtomicUsize = AtomicUsize::new(0);

/// Where `cargo xtask kernel` writes what is asked for: below the kernel, above OpenSBI. 0 if there
/// is nothing.
const PARAMETERS: *const [u64; 4] = core::ptr::without_provenance(0x801F_0000);

/// What a run is asked to do.
struct Parameters {
    seconds: u64,
    seed: u64,
    /// Its place in [`TESTS`].
    test: u64,
    /// How many harts there must be; 0: any number.
    harts: usize,
}

fn parameters() -> Parameters {
    // SAFETY: memory that nobody else uses.
    let [seconds, seed, test, harts] = unsafe { PARAMETERS.read_volatile() };
    Parameters { seconds: seconds.max(1), seed, test, harts: harts as usize }
}

/// What makes a test's threads on a hart, besides the worker; and what hart 0 runs.
type Test = (fn(), fn() -> !);

/// A rival has the first three.
static TESTS: &[Test] = &[
    (torture::make, torture::main),
    (|| thread::make(0, When::Now, latency::load), latency::main),
    (|| (), figures::main),
    #[cfg(not(feature = "rival"))]
    (|| thread::make(0, When::Now, exit::exits), exit::main),
    #[cfg(not(feature = "rival"))]
    (|| thread::make(0, When::Now, srcu::work), srcu::main),
    #[cfg(not(feature = "rival"))]
    (|| thread::make(0, When::Now, dcache::task), dcache::main),
    #[cfg(not(feature = "rival"))]
    (|| thread::make(0, When::Now, files::opens), hotplug::stopper),
];

/// Waits until all harts are online, and says how many those are. If they are not as many as they
/// should be, the machine is at fault, not the crate: this is no panic.
fn all_harts() -> usize {
    // Acquire: pairs with the Releases of `hart_main`; the hooks of these harts come before.
    while (UP.load(Acquire).count_ones() as usize) < THERE.load(Acquire) {
        thread::sleep_ticks(1);
    }
    let (there, wanted) = (THERE.load(Relaxed), parameters().harts);
    if wanted != 0 && there != wanted {
        say!("{there} harts have started, not {wanted}");
        sbi::power_off(false);
    }
    there
}

/// A hart begins: the first one of all, or one that another has started. Interrupts are off.
#[unsafe(no_mangle)]
extern "C" fn hart_main(hart: usize, is_first: bool) -> ! {
    hart::init(hart);
    thread::begin_idle();
    if is_first {
        // What comes before is not about the crate, what comes after is.
        say!("kernel: {} Hz", hart::HZ);
    }
    RCU.cpu_starting(hart);
    let this = hart::this();
    // Relaxed: the hart that started this one says so, and is ordered before by the start.
    let is_new = !this.stops.swap(false, Relaxed);
    let Parameters { seed, test, .. } = parameters();
    let (make, main) = TESTS[test as usize];
    if is_new {
        this.dice.store(seed ^ (hart as u64) << 32, Relaxed);
        thread::make(torture::WORKER, When::Now, thread::worker);
        make();
    }
    thread::make(torture::WORKER + 1, When::Now, if hart == 0 { main } else { hotplug::stopper });
    this.start_tick();
    RCU.cpu_online(hart);
    if is_first {
        let entry = hart_entry as *const () as usize;
        let started = (0..HARTS).filter(|&other| other != hart && sbi::start_hart(other, entry));
        // Release, here and below: pairs with `all_harts` and `hotplug::start`.
        THERE.store(1 + started.count(), Release);
    }
    UP.fetch_or(1 << hart, Release);
    // Full fence: pairs with the one of `sbi::interrupt`. Who does not interrupt this hart, since
    // it saw the bit clear, has written before what the idle loop sees now.
    fence(SeqCst);
    thread::idle();
}

#[panic_handler]
fn panic(what: &core::panic::PanicInfo<'_>) -> ! {
    let _irq = hart::irqs_off();
    let me = hart::this().id + 1;
    // Relaxed: nothing is passed on. Others may panic for the same reason: the first one tells.
    match PANICKED.compare_exchange(0, me, Relaxed, Relaxed) {
        Ok(_) => {
            say!("{what}");
            watch::report();
            sbi::power_off(false);
        }
        // The report itself has panicked.
        Err(first) if first == me => sbi::power_off(false),
        Err(_) => loop {
            core::hint::spin_loop();
        },
    }
}
