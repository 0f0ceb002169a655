//! A machine of CPUs. A test is on one CPU at a time ([`on`]) and moves between them as it likes;
//! or there is a thread for each CPU. Objects count how often they were freed.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use kernel::{CpuSet, Head, Kernel, Options, Platform, Zone};

/// The time between two ticks.
pub(crate) const TICK_NS: u64 = 1_000_000;
/// A busy CPU is asked to reschedule after so many.
pub(crate) const PATIENCE: u32 = 20;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
    /// What happens while a thread waits.
    static MEANWHILE: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
}

/// The hardware.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) clock_ns: AtomicU64,
    /// For each CPU how often it was asked to reschedule, and is to now.
    pub(crate) resched: Vec<AtomicU32>,
    pub(crate) is_to_resched: Vec<AtomicU32>,
    /// How often its worker was woken.
    pub(crate) woken: Vec<AtomicU32>,
}

impl Board {
    fn new(cpus: usize) -> Self {
        let zeros = || (0..cpus).map(|_| AtomicU32::new(0)).collect();
        let (resched, is_to_resched, woken) = (zeros(), zeros(), zeros());
        Self { clock_ns: AtomicU64::new(0), resched, is_to_resched, woken }
    }
}

/// A kernel, and its board once more for the test.
#[derive(Debug)]
pub(crate) struct Machine<const CPUS: usize> {
    pub(crate) kernel: Kernel<Wires, CPUS>,
    pub(crate) board: Arc<Board>,
}

/// The platform.
#[derive(Debug)]
pub(crate) struct Wires(Arc<Board>);

impl Platform for Wires {
    type IrqGuard = ();

    fn this_cpu(&self) -> usize {
        CPU.get()
    }

    fn irq_off(&self) {}

    fn now_ns(&self) -> u64 {
        self.0.clock_ns.load(SeqCst)
    }

    fn is_preemptible(&self) -> bool {
        SECTIONS.get() == 0
    }

    fn thread(&self) -> usize {
        CPU.get()
    }

    fn resched(&self, cpus: &CpuSet) {
        for cpu in cpus.iter() {
            self.0.resched[cpu].fetch_add(1, SeqCst);
            self.0.is_to_resched[cpu].store(1, SeqCst);
        }
    }

    fn wake_worker(&self, cpu: usize) {
        self.0.woken[cpu].fetch_add(1, SeqCst);
    }

    fn wait(&self, done: &dyn Fn() -> bool) {
        while !done() {
            let meanwhile = MEANWHILE.with_borrow(Clone::clone);
            meanwhile.expect("somebody must do something, or the wait is for ever")();
        }
    }

    fn wake_waiters(&self) {}
}

/// Does something on that CPU.
pub(crate) fn on<R>(cpu: usize, what: impl FnOnce() -> R) -> R {
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            CPU.set(self.0);
        }
    }
    let _back = Back(CPU.replace(cpu));
    what()
}

/// A section, as the platform knows it.
pub(crate) fn section<R>(what: impl FnOnce() -> R) -> R {
    SECTIONS.set(SECTIONS.get() + 1);
    let result = what();
    SECTIONS.set(SECTIONS.get() - 1);
    result
}

/// Ends them all, after a panic.
pub(crate) fn leave_sections() {
    SECTIONS.set(0);
}

/// While a thread waits in `what`, `meanwhile` happens again and again.
pub(crate) fn with_meanwhile<R>(meanwhile: Rc<dyn Fn()>, what: impl FnOnce() -> R) -> R {
    let before = MEANWHILE.replace(Some(meanwhile));
    let result = what();
    MEANWHILE.set(before);
    result
}

impl<const CPUS: usize> Machine<CPUS> {
    /// With so many CPUs online, from 0.
    pub(crate) fn booted(online: usize) -> Rc<Self> {
        Rc::new(Self::with(online, |options| options))
    }

    /// The same with other options.
    pub(crate) fn with(online: usize, change: impl FnOnce(Options) -> Options) -> Self {
        let board = Arc::new(Board::new(CPUS));
        let options = Options { tick_ns: TICK_NS, panics: true, ..Options::new(1_000, CPUS) };
        let options = change(options.resched_after(PATIENCE));
        let machine = Self { kernel: Kernel::new(Wires(board.clone()), options), board };
        (0..online).for_each(|cpu| machine.start(cpu));
        machine
    }

    pub(crate) fn start(&self, cpu: usize) {
        on(cpu, || {
            self.kernel.cpu_starting(cpu);
            self.kernel.cpu_online(cpu);
        });
    }

    /// CPU `cpu` goes, and `by` buries it.
    pub(crate) fn stop(&self, cpu: usize, by: usize) {
        on(cpu, || self.kernel.cpu_dying(cpu));
        on(by, || self.kernel.cpu_dead(cpu));
    }

    /// A tick of a CPU in the kernel, perhaps in a section.
    pub(crate) fn busy_tick(&self, cpu: usize) {
        self.board.clock_ns.fetch_add(TICK_NS, SeqCst);
        on(cpu, || {
            let interrupt = self.kernel.irq_enter();
            self.kernel.tick(false, false);
            self.kernel.irq_exit(interrupt);
        });
    }

    /// A tick of a CPU that is idle. Returns whether the tick must go on.
    pub(crate) fn idle_tick(&self, cpu: usize) -> bool {
        self.board.clock_ns.fetch_add(TICK_NS, SeqCst);
        on(cpu, || {
            let interrupt = self.kernel.irq_enter();
            self.kernel.tick(false, true);
            self.kernel.irq_exit(interrupt)
        })
    }

    /// The CPU's worker runs what is ready.
    pub(crate) fn work(&self, cpu: usize) {
        on(cpu, || while self.kernel.has_callbacks() && self.kernel.run_callbacks(cpu, 7) {});
    }

    /// A jiffy of a CPU that is awake and in no section.
    pub(crate) fn jiffy(&self, cpu: usize) {
        on(cpu, || self.kernel.context_switch());
        self.busy_tick(cpu);
        self.work(cpu);
    }

    /// So many jiffies of these CPUs.
    pub(crate) fn jiffies(&self, count: usize, cpus: impl IntoIterator<Item = usize> + Clone) {
        for _ in 0..count {
            cpus.clone().into_iter().for_each(|cpu| self.jiffy(cpu));
        }
    }

    /// How often `cpu` was asked to reschedule.
    pub(crate) fn reschedules(&self, cpu: usize) -> u32 {
        self.board.resched[cpu].load(SeqCst)
    }

    /// Queues the freeing of an object, on `cpu`.
    pub(crate) fn call(&self, cpu: usize, freed: &Arc<AtomicU32>) -> Zone {
        let object = Box::new(Object { head: Head::new(), freed: freed.clone() });
        let head = NonNull::from(Box::leak(object)).cast::<Head>();
        // SAFETY: the object is nobody else's, and `free` takes it.
        on(cpu, || unsafe { self.kernel.call(head, free) })
    }
}

/// What is freed. The head is at its beginning, so that a pointer to it is one to the object.
#[repr(C)]
struct Object {
    head: Head,
    freed: Arc<AtomicU32>,
}

unsafe fn free(head: NonNull<Head>) {
    // SAFETY: it was queued by `Machine::call`, which gave the object away.
    let object = unsafe { Box::from_raw(head.cast::<Object>().as_ptr()) };
    object.freed.fetch_add(1, SeqCst);
}

/// How many objects were freed.
pub(crate) fn counter() -> Arc<AtomicU32> {
    Arc::new(AtomicU32::new(0))
}

pub(crate) fn count(of: &AtomicU32) -> u32 {
    of.load(SeqCst)
}
