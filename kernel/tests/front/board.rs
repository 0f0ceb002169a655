//! A machine of CPUs. A test is on one CPU at a time ([`on`]) and moves between them as it likes;
//! or there is a thread for each CPU. Objects count how often they were freed.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};

use kernel::engine::tree::Variant;
use kernel::{
    CpuSet, GracePeriods, Head, Hook, Interrupt, Kernel, Options, Platform, Refused, TreeRcu, Zone,
};

/// The time between two ticks.
pub(crate) const TICK_NS: u64 = 1_000_000;
/// A busy CPU is asked to reschedule after so many.
pub(crate) const PATIENCE: u32 = 20;
/// Ticks in which a grace period ends that nothing holds up.
pub(crate) const ENOUGH: usize = 20;

type Happens = Rc<dyn Fn()>;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static SECTIONS: Cell<u32> = const { Cell::new(0) };
    /// A thread that is not the one of its CPU.
    static THREAD: Cell<Option<usize>> = const { Cell::new(None) };
    /// How often interrupts were turned off, and not on again.
    static IRQS_OFF: Cell<u32> = const { Cell::new(0) };
    /// The scheduler's locks are held, which only some functions of the platform take.
    static IS_SCHEDULING: Cell<bool> = const { Cell::new(false) };
    /// An NMI that comes when the clock is read, which is under the machine's lock too.
    static NMI: RefCell<Option<Rc<dyn Fn()>>> = const { RefCell::new(None) };
    /// An interrupt that comes when interrupts are turned on, so many times later.
    static INTERRUPT: RefCell<Option<(u32, Happens)>> = const { RefCell::new(None) };
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
    /// How often threads have waited, and those that wait were woken.
    pub(crate) waits: AtomicU64,
    pub(crate) wakes: AtomicU64,
    /// There is a thread for each CPU: what one waits for may become true a little before its wake.
    pub(crate) has_threads: AtomicBool,
}

impl Board {
    fn new(cpus: usize) -> Self {
        let zeros = || (0..cpus).map(|_| AtomicU32::new(0)).collect();
        let (resched, is_to_resched, woken) = (zeros(), zeros(), zeros());
        let [clock_ns, waits, wakes] = [0; 3].map(AtomicU64::new);
        let has_threads = AtomicBool::new(false);
        Self { clock_ns, resched, is_to_resched, woken, waits, wakes, has_threads }
    }
}

/// A kernel, and its board once more for the test.
#[derive(Debug)]
pub(crate) struct Machine<const CPUS: usize, E = TreeRcu<CPUS>> {
    pub(crate) kernel: Kernel<Wires, CPUS, E>,
    pub(crate) board: Arc<Board>,
    freed: Arc<AtomicU32>,
}

/// The platform.
#[derive(Debug)]
pub(crate) struct Wires(Arc<Board>);

impl Wires {
    /// To a new board of so many CPUs.
    pub(crate) fn to_board(cpus: usize) -> (Self, Arc<Board>) {
        let board = Arc::new(Board::new(cpus));
        (Self(board.clone()), board)
    }
}

/// Interrupts are off on the thread's CPU.
#[derive(Debug)]
pub(crate) struct IrqsOff(PhantomData<*const ()>);

impl IrqsOff {
    pub(crate) fn new() -> Self {
        IRQS_OFF.set(IRQS_OFF.get() + 1);
        Self(PhantomData)
    }
}

impl Drop for IrqsOff {
    fn drop(&mut self) {
        IRQS_OFF.set(IRQS_OFF.get() - 1);
        if IRQS_OFF.get() != 0 {
            return;
        }
        let now = INTERRUPT.with_borrow_mut(|pending| match pending {
            Some((left @ 1.., _)) => {
                *left -= 1;
                None
            }
            _ => pending.take(),
        });
        if let Some((_, interrupt)) = now {
            interrupt();
        }
    }
}

#[track_caller]
fn assert_irqs(are_off: bool) {
    assert_eq!(IRQS_OFF.get() != 0, are_off, "whether interrupts are off");
}

/// One of the functions that take locks of the scheduler.
#[track_caller]
fn assert_asked(are_off: bool) {
    assert!(!IS_SCHEDULING.get(), "who holds these locks asks for them");
    assert_irqs(are_off);
}

// SAFETY: the thread that says it is a CPU is the only one that does. An interrupt is a function
// that it calls while they are on, but for NMIs, which call their own hooks alone.
unsafe impl Platform for Wires {
    type IrqGuard = IrqsOff;

    fn this_cpu(&self) -> usize {
        assert_irqs(true);
        CPU.get()
    }

    fn irq_off(&self) -> IrqsOff {
        IrqsOff::new()
    }

    fn now_ns(&self) -> u64 {
        assert_asked(true);
        if let Some(nmi) = NMI.take() {
            nmi();
            NMI.set(Some(nmi));
        }
        self.0.clock_ns.load(SeqCst)
    }

    fn is_preemptible(&self) -> bool {
        SECTIONS.get() == 0 && IRQS_OFF.get() == 0
    }

    fn thread(&self) -> usize {
        THREAD.get().unwrap_or(CPU.get())
    }

    fn resched(&self, cpus: &CpuSet) {
        assert_asked(true);
        for cpu in cpus.iter() {
            self.0.resched[cpu].fetch_add(1, SeqCst);
            self.0.is_to_resched[cpu].store(1, SeqCst);
        }
    }

    fn wake_worker(&self, cpu: usize) {
        assert_asked(true);
        assert_eq!(cpu, CPU.get());
        self.0.woken[cpu].fetch_add(1, SeqCst);
    }

    /// Looks only when it has said that it sleeps, and after a wake; or all the time, if it polls.
    fn wait(&self, done: &dyn Fn() -> bool, polls: bool) {
        assert_asked(false);
        self.0.waits.fetch_add(1, SeqCst);
        let mut seen = self.0.wakes.load(SeqCst);
        let has_threads = self.0.has_threads.load(SeqCst);
        let meanwhile = MEANWHILE.with_borrow(Clone::clone);
        let mut left = 10_000;
        let mut meanwhile = || {
            meanwhile.as_ref().expect("somebody must do something, or it waits for ever")();
            left -= u32::from(!has_threads);
            assert!(left != 0, "it waits for ever");
        };
        while !done() {
            meanwhile();
            while !polls && self.0.wakes.load(SeqCst) == seen {
                assert!(has_threads || !done(), "nobody has woken the waiter");
                meanwhile();
            }
            seen = self.0.wakes.load(SeqCst);
        }
    }

    fn wake_waiters(&self) {
        assert_asked(true);
        self.0.wakes.fetch_add(1, SeqCst);
    }
}

/// Does something with the scheduler's locks held, on that CPU.
pub(crate) fn scheduling<R>(cpu: usize, what: impl FnOnce() -> R) -> R {
    IS_SCHEDULING.set(true);
    let result = on(cpu, what);
    IS_SCHEDULING.set(false);
    result
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

/// The thread that calls is on another CPU from now on.
pub(crate) fn migrate(cpu: usize) {
    CPU.set(cpu);
}

/// What runs is another thread than the CPU's own.
pub(crate) fn as_thread<R>(thread: usize, what: impl FnOnce() -> R) -> R {
    THREAD.set(Some(thread));
    let result = what();
    THREAD.set(None);
    result
}

/// While `what` runs, an NMI comes each time the clock is read.
pub(crate) fn with_nmi<R>(nmi: Rc<dyn Fn()>, what: impl FnOnce() -> R) -> R {
    NMI.set(Some(nmi));
    let result = what();
    NMI.set(None);
    result
}

/// An interrupt comes as interrupts are turned on, after so many times that they were.
pub(crate) fn interrupt_after(times: u32, interrupt: Happens) {
    INTERRUPT.set(Some((times, interrupt)));
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

/// Does the same with each engine over so many CPUs, which is called `E` there; or with a machine
/// of so many, all of them online.
macro_rules! under_each_engine {
    ($cpus:expr, |$machine:ident| $body:block) => {
        under_each_engine!($cpus, {
            let $machine = crate::board::Machine::<$cpus, E>::booted($cpus);
            $body
        })
    };
    ($cpus:expr, $body:block) => {{
        use kernel::engine::store::Fixed;
        use kernel::engine::{on_demand, poll, tick, token};
        use kernel::{Driven, TreeRcu};
        under_each_engine!(@ $body
            TreeRcu<$cpus>,
            Driven<poll::Global<Fixed<$cpus>>>,
            Driven<poll::PerCpu<Fixed<$cpus>>>,
            Driven<tick::Tick<Fixed<$cpus>>>,
            Driven<token::Published<Fixed<$cpus>>>,
            Driven<token::Relay<Fixed<$cpus>>>,
            Driven<on_demand::OnDemand<Fixed<$cpus>>>,
        );
    }};
    (@ $body:block $($engine:ty,)*) => {$({
        type E = $engine;
        $body
    })*};
}
pub(crate) use under_each_engine;

/// Numbers that look random, the same for each seed.
#[derive(Debug)]
pub(crate) struct Dice(Cell<u64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(crate) fn roll(&self, sides: u64) -> u64 {
        self.0.set(self.0.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
        (self.0.get() >> 33) % sides
    }
}

/// Tree RCU of all kernels; what they wait for is so much.
pub(crate) fn variants(wait: u32) -> [Variant; 5] {
    [
        Variant::V3_15,
        Variant::V0 { period: wait },
        Variant::V1 { flag_after_jiffies: wait },
        Variant::V2 { sched_qs_jiffies: wait },
        Variant::Today,
    ]
}

/// Two CPUs, of which CPU 1 is idle.
pub(crate) fn with_one_idle() -> Rc<Machine<2>> {
    let machine = Machine::booted(2);
    on(1, || machine.kernel.idle_enter());
    machine
}

impl<const CPUS: usize, E: GracePeriods<CPUS> + 'static> Machine<CPUS, E> {
    /// With so many CPUs online, from 0.
    pub(crate) fn booted(online: usize) -> Rc<Self> {
        Rc::new(Self::with(online, |_| {}))
    }

    /// The same with other options.
    pub(crate) fn with(online: usize, change: impl FnOnce(&mut Options)) -> Self {
        let (wires, board) = Wires::to_board(CPUS);
        let options = Options { tick_ns: TICK_NS, panics: true, ..Options::new(1_000, CPUS) };
        let mut options = options.resched_after(PATIENCE);
        change(&mut options);
        let machine = Self { kernel: Kernel::new(wires, options), board, freed: counter() };
        (0..online).for_each(|cpu| machine.start(cpu));
        machine
    }

    /// What is misused is counted there, and goes on.
    pub(crate) fn lenient(online: usize) -> Rc<Self> {
        Rc::new(Self::with(online, |options| options.panics = false))
    }

    /// How often something was misused, and the hook of the last time.
    pub(crate) fn misuses(&self) -> (u32, Hook) {
        self.kernel.snapshot().unwrap().misuses
    }

    pub(crate) fn start(&self, cpu: usize) {
        on(cpu, || {
            self.kernel.cpu_starting(cpu);
            self.kernel.cpu_online(cpu);
        });
    }

    /// CPU `cpu` goes, and `by` buries it.
    pub(crate) fn stop(&self, cpu: usize, by: usize) {
        assert!(on(cpu, || self.kernel.cpu_dying(cpu)), "CPU {cpu} has to go on");
        on(by, || self.kernel.cpu_dead(cpu));
    }

    /// A handler begins on that CPU, with interrupts off.
    pub(crate) fn enter(&self, cpu: usize) -> Interrupt {
        let _irq = IrqsOff::new();
        on(cpu, || self.kernel.irq_enter())
    }

    /// And ends. Returns whether the tick must go on.
    pub(crate) fn exit(&self, cpu: usize, interrupt: Interrupt) -> bool {
        let _irq = IrqsOff::new();
        on(cpu, || self.kernel.irq_exit(interrupt))
    }

    /// The same for an NMI.
    pub(crate) fn enter_nmi(&self, cpu: usize) -> Interrupt {
        let _irq = IrqsOff::new();
        on(cpu, || self.kernel.nmi_enter())
    }

    /// And its end.
    pub(crate) fn exit_nmi(&self, cpu: usize, interrupt: Interrupt) {
        let _irq = IrqsOff::new();
        on(cpu, || self.kernel.nmi_exit(interrupt));
    }

    /// A section in an NMI on this CPU.
    pub(crate) fn nmi<R>(&self, what: impl FnOnce() -> R) -> R {
        let _irq = IrqsOff::new();
        let interrupt = self.kernel.nmi_enter();
        let result = what();
        self.kernel.nmi_exit(interrupt);
        result
    }

    /// The timer interrupts that CPU. Returns whether the tick must go on.
    pub(crate) fn tick(&self, cpu: usize, from_user: bool) -> bool {
        assert_irqs(false);
        let _irq = IrqsOff::new();
        let interrupt = self.enter(cpu);
        on(cpu, || self.kernel.tick(&interrupt, from_user));
        self.exit(cpu, interrupt)
    }

    /// A tick of a CPU in the kernel, perhaps in a section; or of one that is idle. Returns whether
    /// the tick must go on.
    pub(crate) fn busy_tick(&self, cpu: usize) -> bool {
        self.board.clock_ns.fetch_add(TICK_NS, SeqCst);
        self.tick(cpu, false)
    }

    /// The CPU's worker runs what is ready.
    pub(crate) fn work(&self, cpu: usize) {
        on(cpu, || while self.kernel.has_callbacks() && self.kernel.run_callbacks(cpu, 7) {});
    }

    /// The same on a CPU that is idle, if it has something to run.
    pub(crate) fn idle_work(&self, cpu: usize) {
        if on(cpu, || self.kernel.has_callbacks()) {
            on(cpu, || self.kernel.idle_exit());
            self.work(cpu);
            on(cpu, || self.kernel.idle_enter());
        }
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

    /// So many ticks of these CPUs, which pass through the scheduler in each, and run nothing.
    pub(crate) fn switches(&self, count: usize, cpus: impl IntoIterator<Item = usize> + Clone) {
        for _ in 0..count {
            for cpu in cpus.clone() {
                on(cpu, || self.kernel.context_switch());
                self.busy_tick(cpu);
            }
        }
    }

    /// So many jiffies of CPU 0 while another CPU is in a section all the time: the tick
    /// interrupts the kernel there, and no switch comes.
    pub(crate) fn jiffies_beside_a_section(&self, count: usize, cpu: usize) {
        for _ in 0..count {
            self.jiffy(0);
            self.busy_tick(cpu);
        }
    }

    /// How often `cpu` was asked to reschedule.
    pub(crate) fn reschedules(&self, cpu: usize) -> u32 {
        self.board.resched[cpu].load(SeqCst)
    }

    /// Whether `cpu` was asked to since this was asked last.
    pub(crate) fn is_asked_to_reschedule(&self, cpu: usize) -> bool {
        self.board.is_to_resched[cpu].swap(0, SeqCst) != 0
    }

    /// CPU `cpu` waits in `what`, and `meanwhile` happens again and again.
    pub(crate) fn waits(
        self: &Rc<Self>,
        cpu: usize,
        meanwhile: impl Fn(&Self) + 'static,
        what: impl FnOnce(&Kernel<Wires, CPUS, E>) -> Result<(), Refused>,
    ) {
        let machine = self.clone();
        let meanwhile = Rc::new(move || meanwhile(&machine));
        on(cpu, || with_meanwhile(meanwhile, || what(&self.kernel))).unwrap();
    }

    /// CPU `cpu` is in a section: nothing that another queues may be freed. It ends.
    #[track_caller]
    pub(crate) fn assert_is_waited_for(&self, cpu: usize) {
        self.freed(); // of before
        self.free(0);
        self.jiffies_beside_a_section(ENOUGH, cpu);
        assert_eq!(self.freed(), 0, "CPU {cpu} is in a section");
        assert_eq!(self.freed_in(ENOUGH, [cpu, 0]), 1);
    }

    /// Queues the freeing of an object on `cpu`.
    pub(crate) fn free(&self, cpu: usize) -> Zone {
        self.free_of(cpu, 0)
    }

    /// The same for an object that counts for so many bytes.
    pub(crate) fn free_of(&self, cpu: usize, bytes: u32) -> Zone {
        let freed = self.freed.clone();
        self.queue_on(cpu, bytes, Box::new(move || _ = freed.fetch_add(1, SeqCst)))
    }

    /// The same for so many of no bytes. Returns what the last one is told.
    pub(crate) fn free_many(&self, cpu: usize, objects: u32) -> Zone {
        (0..objects).map(|_| self.free(cpu)).last().expect("one at least")
    }

    /// How many were freed since this was asked last.
    pub(crate) fn freed(&self) -> u32 {
        self.freed.swap(0, SeqCst)
    }

    /// The same when so many jiffies of these CPUs have passed.
    pub(crate) fn freed_in(
        &self,
        count: usize,
        cpus: impl IntoIterator<Item = usize> + Clone,
    ) -> u32 {
        self.jiffies(count, cpus);
        self.freed()
    }

    /// Queues what is to be done with the machine, on CPU 0.
    pub(crate) fn queue(self: &Rc<Self>, what: impl FnOnce(&Rc<Self>) + 'static) {
        let machine = self.clone();
        self.queue_on(0, 0, Box::new(move || what(&machine)));
    }

    fn queue_on(&self, cpu: usize, bytes: u32, run: Box<dyn FnOnce()>) -> Zone {
        let head = callback(bytes, run);
        // SAFETY: the callback is nobody else's, and `run` takes it.
        on(cpu, || unsafe { self.kernel.call(head, run_callback) })
            .expect("it is online, and not queued")
    }
}

/// The head is at its beginning, so that a pointer to it is one to the callback.
#[repr(C)]
struct Callback {
    head: Head,
    run: Box<dyn FnOnce()>,
}

/// A callback that does that, to be queued with [`run_callback`].
pub(crate) fn callback(bytes: u32, run: Box<dyn FnOnce()>) -> NonNull<Head> {
    NonNull::from(Box::leak(Box::new(Callback { head: Head::of(bytes), run }))).cast()
}

pub(crate) unsafe fn run_callback(head: NonNull<Head>) {
    // SAFETY: it was made by `callback`, and queued once.
    let callback = unsafe { Box::from_raw(head.cast::<Callback>().as_ptr()) };
    (callback.run)();
}

/// How many objects were freed.
pub(crate) fn counter() -> Arc<AtomicU32> {
    Arc::new(AtomicU32::new(0))
}

pub(crate) fn count(of: &AtomicU32) -> u32 {
    of.load(SeqCst)
}
