//! A hart, which is a CPU here: its block, interrupts off, preemption off.
//!
//! A section of a reader is [`Section`]: it counts one word of its own hart, and calls nothing of
//! the crate.

use core::arch::asm;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*, compiler_fence};

use crate::sbi;
use crate::thread::{self, Threads};

/// As many as there can be.
pub(crate) const HARTS: usize = 16;
/// Ticks a second.
pub(crate) const HZ: u32 = if cfg!(feature = "hz-100") {
    100
} else if cfg!(feature = "hz-250") {
    250
} else {
    1_000
};
/// Of the machine's clock.
pub(crate) const SECOND: u64 = 10_000_000;
/// Between two ticks.
pub(crate) const TICK: u64 = SECOND / HZ as u64;

const SIE: usize = 1 << 1;
/// Interrupts of software and of the timer, in `sie`.
const SOFTWARE_AND_TIMER: usize = 1 << 1 | 1 << 5;

/// What a hart knows of itself; `tp` points to it. Others set what is atomic and says so. The rest
/// is atomic for the hart's own interrupts.
pub(crate) struct Hart {
    pub(crate) id: usize,
    /// Sections, and what else must not be preempted.
    preempt_off: AtomicU32,
    /// The scheduler is to be passed through. Others set it, and interrupt.
    pub(crate) need_resched: AtomicBool,
    /// The next interrupt begins with a simulated NMI. Others set it, and interrupt.
    pub(crate) nmi: AtomicBool,
    /// A thread sleeps here until something ends that it waits for. Others look.
    pub(crate) has_waiter: AtomicBool,
    /// Callbacks are ready.
    pub(crate) has_work: AtomicBool,
    /// The hart is to stop, or has. Others say so.
    pub(crate) stops: AtomicBool,
    /// The tick must go on in the idle loop, as the hooks say.
    pub(crate) keeps_tick: AtomicBool,
    /// The timer interrupts at the next tick.
    pub(crate) is_ticking: AtomicBool,
    /// It runs one thread, which the tick is not to interrupt.
    pub(crate) is_tickless: AtomicBool,
    /// The tick does not preempt.
    pub(crate) is_lazy: AtomicBool,
    /// As a kernel of 2014: a tick notices user mode, and no hook; the thread that runs here runs
    /// the callbacks, as a softirq does, without a pass through the scheduler.
    pub(crate) is_of_2014: AtomicBool,
    /// Interrupts by which this hart has asked others to reschedule.
    pub(crate) rescheds: AtomicU64,
    pub(crate) ticks: AtomicU64,
    /// How often the idle loop has stopped the tick.
    pub(crate) tick_stops: AtomicU64,
    pub(crate) dice: AtomicU64,
    pub(crate) stretches: Stretches,
    pub(crate) threads: Threads,
}

// SAFETY: `threads` is reached by the hart itself with interrupts off, as its functions demand; all
// else is atomic.
unsafe impl Sync for Hart {}

static ALL: [Hart; HARTS] = {
    let mut all = [const { Hart::new() }; HARTS];
    let mut id = 0;
    while id < HARTS {
        all[id].id = id;
        id += 1;
    }
    all
};

impl Hart {
    const fn new() -> Self {
        Self {
            id: 0,
            preempt_off: AtomicU32::new(0),
            need_resched: AtomicBool::new(false),
            nmi: AtomicBool::new(false),
            has_waiter: AtomicBool::new(false),
            has_work: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            keeps_tick: AtomicBool::new(true),
            is_ticking: AtomicBool::new(false),
            is_tickless: AtomicBool::new(false),
            is_lazy: AtomicBool::new(false),
            is_of_2014: AtomicBool::new(false),
            rescheds: AtomicU64::new(0),
            ticks: AtomicU64::new(0),
            tick_stops: AtomicU64::new(0),
            dice: AtomicU64::new(0),
            stretches: Stretches::new(),
            threads: Threads::new(),
        }
    }

    /// Whether no section is open here, nor anything else that must not be preempted.
    pub(crate) fn is_preemptible(&self) -> bool {
        self.preempt_off.load(Relaxed) == 0
    }

    /// The tick comes on.
    pub(crate) fn start_tick(&self) {
        if !self.is_ticking.load(Relaxed) && !self.is_tickless.load(Relaxed) {
            self.next_tick(u64::MAX);
        }
    }

    /// The tick comes at the next of the hart's times, which are one `TICK` apart, whenever it has
    /// stopped and come on, or at `no_later`, if that is before. Each hart has other times.
    pub(crate) fn next_tick(&self, no_later: u64) {
        let (now, offset) = (sbi::time(), self.id as u64 * TICK / HARTS as u64);
        self.is_ticking.store(true, Relaxed);
        sbi::set_timer(no_later.min(now + TICK - (now + TICK - offset) % TICK));
    }

    /// The tick stops; but the timer interrupts at that time.
    pub(crate) fn stop_tick(&self, until: u64) {
        self.is_ticking.store(false, Relaxed);
        sbi::set_timer(until);
    }

    /// A number below `sides` that looks random. An interrupt may get the same.
    pub(crate) fn roll(&self, sides: u64) -> u64 {
        roll(&self.dice, sides)
    }
}

/// A number below `sides` that looks random, of these dice.
pub(crate) fn roll(dice: &AtomicU64, sides: u64) -> u64 {
    let next = dice.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005);
    let next = next.wrapping_add(1_442_695_040_888_963_407);
    dice.store(next, Relaxed);
    (next >> 33) % sides
}

/// How long interrupts were off, and the scheduler's hook lasted, at most: by the machine's clock,
/// if the kernel is built to measure it. Interrupts that come in the hook count as its own.
pub(crate) struct Stretches {
    off_since: AtomicU64,
    pub(crate) off: AtomicU64,
    pub(crate) switch: AtomicU64,
}

impl Stretches {
    const fn new() -> Self {
        Self { off_since: AtomicU64::new(0), off: AtomicU64::new(0), switch: AtomicU64::new(0) }
    }

    pub(crate) fn forget(&self) {
        self.off.store(0, Relaxed);
        self.switch.store(0, Relaxed);
    }

    /// The scheduler's hook.
    pub(crate) fn of_switch(&self, hook: impl FnOnce()) {
        let begun = if IS_MEASURED { sbi::time() } else { 0 };
        hook();
        if IS_MEASURED {
            raise(&self.switch, sbi::time() - begun);
        }
    }
}

const IS_MEASURED: bool = cfg!(feature = "stretches");

/// Interrupts have gone off here.
pub(crate) fn irqs_went_off() {
    if IS_MEASURED {
        this().stretches.off_since.store(sbi::time(), Relaxed);
    }
}

/// They are about to go on.
pub(crate) fn irqs_go_on() {
    if IS_MEASURED {
        let stretches = &this().stretches;
        raise(&stretches.off, sbi::time() - stretches.off_since.load(Relaxed));
    }
}

/// Of this hart's own.
fn raise(most: &AtomicU64, time: u64) {
    most.store(time.max(most.load(Relaxed)), Relaxed);
}

/// This hart. What is done with it is done before another thread may run, or does not care.
pub(crate) fn this() -> &'static Hart {
    let hart: *const Hart;
    // SAFETY: reads a register.
    unsafe { asm!("mv {}, tp", out(reg) hart, options(nomem, nostack)) };
    // SAFETY: `init` has put the block's address there, which nothing changes.
    unsafe { &*hart }
}

/// Another one, or this.
pub(crate) fn of(hart: usize) -> &'static Hart {
    &ALL[hart]
}

/// The hart's number is known from now on, and its traps are caught. Interrupts stay off.
pub(crate) fn init(hart: usize) {
    unsafe extern "C" {
        fn trap_entry();
    }
    let trap = trap_entry as *const () as usize;
    // SAFETY: nothing else uses `tp`, `sscratch` and `stvec`: `entry.s` relies on these values.
    // Floating point is off, so that whoever uses it by mistake traps: no thread saves it.
    unsafe {
        asm!(
            "mv tp, {hart}",
            "csrw sscratch, zero",
            "csrw stvec, {trap}",
            "csrw sie, {sources}",
            "csrc sstatus, {fs}",
            hart = in(reg) core::ptr::from_ref(of(hart)),
            trap = in(reg) trap,
            sources = in(reg) SOFTWARE_AND_TIMER,
            fs = in(reg) 3usize << 13,
        );
    }
}

/// Whether interrupts are on.
pub(crate) fn irqs_are_on() -> bool {
    let status: usize;
    // SAFETY: reads a register.
    unsafe { asm!("csrr {}, sstatus", out(reg) status) };
    status & SIE != 0
}

/// Interrupts are off while it lives, and then as they were.
pub(crate) struct IrqsOff {
    were_on: bool,
    is_of_this_hart: PhantomData<*const ()>,
}

/// Turns interrupts off.
pub(crate) fn irqs_off() -> IrqsOff {
    let before: usize;
    // SAFETY: no memory is touched; the compiler moves none across.
    unsafe { asm!("csrrci {}, sstatus, 2", out(reg) before) };
    if before & SIE != 0 {
        irqs_went_off();
    }
    IrqsOff { were_on: before & SIE != 0, is_of_this_hart: PhantomData }
}

impl Drop for IrqsOff {
    fn drop(&mut self) {
        if self.were_on {
            irqs_go_on();
            // SAFETY: they were on before.
            unsafe { asm!("csrsi sstatus, 2") };
        }
    }
}

/// Pending interrupts are taken, with interrupts off before and after.
///
/// # Safety
/// The caller has interrupts off, and holds nothing that their handlers touch.
pub(crate) unsafe fn take_interrupts() {
    // SAFETY: the caller's. Handlers return to where they came, and restore all registers.
    unsafe { asm!("csrsi sstatus, 2", "nop", "csrci sstatus, 2") };
    irqs_went_off();
}

/// Does something with interrupts on, for who has them off.
#[cfg(feature = "asterinas")]
pub(crate) fn with_irqs_on(what: impl FnOnce()) {
    irqs_go_on();
    // SAFETY: the caller holds nothing that handlers touch, and is not preempted.
    unsafe { asm!("csrsi sstatus, 2") };
    what();
    // SAFETY: they were off before.
    unsafe { asm!("csrci sstatus, 2") };
    irqs_went_off();
}

/// Waits until an interrupt is pending, with interrupts off: it is taken later.
pub(crate) fn wait_for_interrupt() {
    irqs_go_on();
    // SAFETY: the hart stops until then, and changes no register and no memory.
    unsafe { asm!("wfi") };
}

/// Where the emulator counts instructions it runs one hart at a time, until a timer runs out or the
/// hart waits. Here it goes on to the next one: so each runs a little in turn, as if at once.
pub(crate) fn give_turn() {
    let _irq = irqs_off();
    // SAFETY: the hart interrupts itself, so that the wait ends in its next turn; no memory is
    // touched, and interrupts are off.
    unsafe { asm!("csrsi sip, 2", "wfi", "csrci sip, 2") };
    // Another one may have interrupted it meanwhile, and has said so first.
    if this().need_resched.load(Relaxed) {
        // SAFETY: sets this hart's own bit.
        unsafe { asm!("csrsi sip, 2") };
    }
}

/// Takes note of an interrupt from another hart.
pub(crate) fn clear_interrupt() {
    // SAFETY: clears this hart's own bit; no memory is touched.
    unsafe { asm!("csrci sip, 2") };
}

/// A section: preemption is off while it lives.
pub(crate) struct Section(PhantomData<*const ()>);

impl Section {
    pub(crate) fn new() -> Self {
        let count = &this().preempt_off;
        // Relaxed: an interrupt puts back what it found.
        count.store(count.load(Relaxed) + 1, Relaxed);
        compiler_fence(SeqCst);
        Self(PhantomData)
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        let hart = this();
        let left = hart.preempt_off.load(Relaxed) - 1;
        hart.preempt_off.store(left, Relaxed);
        if left == 0 && hart.need_resched.load(Relaxed) && irqs_are_on() {
            thread::yields();
        }
    }
}
