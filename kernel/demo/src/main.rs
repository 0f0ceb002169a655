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
//! - `nmi_enter`, `nmi_exit`: [`torture::nmi`]. Supervisor mode has no NMI, so one is played: by an
//!   interrupt from another hart, and by the clock, which hooks read, also under the lock.
//! - What the crate asks of a kernel: `platform.rs`.
//!
//! A section is [`hart::Section`], which counts a word. The tick stops where `idle_enter` or
//! `irq_exit` says that it may; in user mode it always goes on here, to preempt the program.
//! Threads stay on their hart. There is one address space, so user mode is a mode of the CPU that
//! protects nothing.
#![no_std]
#![no_main]

mod hart;
mod hotplug;
mod latency;
mod platform;
mod sbi;
mod thread;
mod torture;
mod trap;
mod watch;

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

use hart::HARTS;
use platform::RCU;
use sbi::say;
use thread::When;

core::arch::global_asm!(include_str!("entry.s"));

unsafe extern "C" {
    /// Where a hart begins that another one starts.
    fn hart_entry();
}

/// Where each hart boots, and its idle loop stays. The first hook lays the tree out here.
#[repr(C, align(16))]
struct Stacks(UnsafeCell<[[u8; 64 * 1_024]; HARTS]>);

// SAFETY: each hart has its own.
unsafe impl Sync for Stacks {}

#[unsafe(no_mangle)]
static HART_STACKS: Stacks = Stacks(UnsafeCell::new([[0; 64 * 1_024]; HARTS]));

/// Harts that are online, and that there are: known when all have been asked to start.
static UP: AtomicUsize = AtomicUsize::new(0);
static THERE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Where `cargo xtask kernel` writes what is asked for: below the kernel, above OpenSBI. 0 if there
/// is nothing.
const PARAMETERS: *const [u64; 3] = core::ptr::without_provenance(0x801F_0000);

/// What a run is asked to do.
struct Parameters {
    seconds: u64,
    seed: u64,
    /// 0: torture; 1, 2: how long grace periods are waited for, and whether a hart is busy.
    test: u64,
}

fn parameters() -> Parameters {
    // SAFETY: memory that nobody else uses.
    let [seconds, seed, test] = unsafe { PARAMETERS.read_volatile() };
    Parameters { seconds: seconds.max(1), seed, test }
}

/// Waits until all harts are online, and says how many those are.
fn all_harts() -> usize {
    while UP.load(Acquire) < THERE.load(Acquire) {
        thread::sleep_ticks(1);
    }
    THERE.load(Relaxed)
}

/// A hart begins: the first one of all, or one that another has started. Interrupts are off.
#[unsafe(no_mangle)]
extern "C" fn hart_main(hart: usize, is_first: bool) -> ! {
    hart::init(hart);
    RCU.cpu_starting(hart);
    thread::begin_idle();
    let this = hart::this();
    let is_new = !this.stops.swap(false, Relaxed);
    let Parameters { seed, test, .. } = parameters();
    if is_new {
        this.dice.store(seed ^ (hart as u64) << 32, Relaxed);
        thread::make(torture::WORKER, When::Now, thread::worker);
        match (test, hart) {
            (0, _) => torture::make(),
            (2, _) => thread::make(0, When::Now, latency::busy),
            _ => {}
        }
    }
    let main = if test == 0 { torture::main } else { latency::main };
    thread::make(torture::WORKER + 1, When::Now, if hart == 0 { main } else { hotplug::stopper });
    this.start_tick();
    RCU.cpu_online(hart);
    if is_first {
        let entry = hart_entry as *const () as usize;
        let started = (0..HARTS).filter(|&other| other != hart && sbi::start_hart(other, entry));
        THERE.store(1 + started.count(), Release);
    }
    UP.fetch_add(1, Release);
    thread::idle();
}

#[panic_handler]
fn panic(what: &core::panic::PanicInfo<'_>) -> ! {
    static HAS_PANICKED: AtomicBool = AtomicBool::new(false);
    // Others may panic for the same reason: the first one tells.
    while HAS_PANICKED.swap(true, Relaxed) {
        core::hint::spin_loop();
    }
    say!("{what}");
    watch::report();
    sbi::power_off(false);
}
