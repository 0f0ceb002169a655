//! The test: readers that look whether what they found is too old, updaters of each kind, threads
//! that sleep, run user programs, disturb other harts; harts that stop and start.
//!
//! An object is found by readers until it is replaced. From then on it has an age: 1, and one more
//! for each grace period that has gone by since. So a section that began before may find the age
//! 0 or 1 at its end, and none finds 2. The counts of what they found are printed; of 2 and more
//! there must be none.

use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*};

use kernel::{Head, NonNullPtr, RcuDrop, RcuOption};

use crate::hart::{self, HARTS, HZ, SECOND, Section, TICK, this};
use crate::platform::{Board, RCU};
use crate::sbi::{self, say};
use crate::thread::{self, When};
use crate::{THERE, all_harts, hotplug, parameters, watch};

/// Threads of each hart that do what the dice say.
pub(crate) const ACTORS: usize = 3;
/// Its worker's place among them; then comes the one that stops the hart, or on hart 0 [`main`].
pub(crate) const WORKER: usize = ACTORS;
/// An object of this age is used again. A reader that finds another use of it counts as this one.
const AGES: usize = 8;
const SLOTS: usize = 4;
/// Objects of each hart, for a start.
const OBJECTS: usize = 256;

/// What is counted, and printed.
const NAMES: [&str; 17] = [
    "sections",
    "in handlers",
    "in NMIs",
    "NMIs in idle",
    "NMIs in user mode",
    "updates",
    "calls",
    "synchronize",
    "expedited",
    "cookies",
    "barriers",
    "user programs",
    "sleeps",
    "interrupts",
    "cells",
    "without an object",
    "hotplug",
];

#[derive(Clone, Copy)]
#[repr(usize)]
enum What {
    Section,
    Handler,
    Nmi,
    NmiInIdle,
    NmiInUser,
    Update,
    Call,
    Synchronize,
    Expedited,
    Cookie,
    Barrier,
    User,
    Sleep,
    Interrupt,
    Cell,
    NoObject,
    Hotplug,
}

/// A hart's counts. They are on lines of its own, and no atomic instruction counts: it would order
/// a section for the crate.
#[repr(align(64))]
struct Counts {
    of: [AtomicU64; NAMES.len()],
    /// What readers found, by age.
    found: [AtomicU64; AGES + 1],
}

static COUNTS: [Counts; HARTS] = [const {
    Counts {
        of: [const { AtomicU64::new(0) }; NAMES.len()],
        found: [const { AtomicU64::new(0) }; AGES + 1],
    }
}; HARTS];
static CELL: RcuOption<Owner, Board> = RcuOption::new_none();
static IS_OVER: AtomicBool = AtomicBool::new(false);
static IS_READY: AtomicBool = AtomicBool::new(false);
/// Actors that have ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

#[repr(C)]
struct Object {
    head: Head,
    age: AtomicU32,
    /// How often it was used.
    uses: AtomicU32,
    next: AtomicPtr<Object>,
}

static ALL: [[Object; OBJECTS]; HARTS] = [const {
    [const {
        Object {
            head: Head::of(size_of::<Object>() as u32),
            age: AtomicU32::new(0),
            uses: AtomicU32::new(0),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }; OBJECTS]
}; HARTS];
static CURRENT: [AtomicPtr<Object>; SLOTS] = [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS];
/// Those of each hart that are free: touched by it with interrupts off.
static FREE: [AtomicPtr<Object>; HARTS] = [const { AtomicPtr::new(ptr::null_mut()) }; HARTS];

fn count(what: What) {
    add(&COUNTS[this().id].of[what as usize]);
}

/// Counts one more on this hart. What an interrupt counts meanwhile is lost, but it is never 0
/// again.
fn add(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

fn sum(of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
    COUNTS.iter().map(|counts| of(counts).load(Relaxed)).sum()
}

/// Takes a free object of this hart.
fn take() -> Option<&'static Object> {
    let _irq = hart::irqs_off();
    let free = &FREE[this().id];
    // SAFETY: objects are never freed as memory.
    let object = unsafe { free.load(Relaxed).as_ref() }?;
    free.store(object.next.load(Relaxed), Relaxed);
    object.uses.fetch_add(1, Relaxed);
    object.age.store(0, Release);
    Some(object)
}

fn give(object: &'static Object) {
    let _irq = hart::irqs_off();
    let free = &FREE[this().id];
    object.next.store(free.load(Relaxed), Relaxed);
    free.store(ptr::from_ref(object).cast_mut(), Relaxed);
}

/// A grace period has gone by. Returns whether the object was given back.
fn grow(object: &'static Object) -> bool {
    let age = object.age.load(Relaxed) + 1;
    object.age.store(age, Release);
    let is_old = age as usize == AGES;
    if is_old {
        give(object);
    }
    is_old
}

/// # Safety
/// It is the head of one of our objects.
unsafe fn object_of(head: NonNull<Head>) -> &'static Object {
    // SAFETY: the caller's; the head is at the object's beginning, and objects are never freed.
    unsafe { head.cast::<Object>().as_ref() }
}

fn queue(object: &'static Object, run: kernel::Run) {
    count(What::Call);
    // SAFETY: the object is this thread's alone, and not queued; it gives it away.
    let queued = unsafe { RCU.call(NonNull::from(object).cast(), run) };
    queued.expect("this hart is online");
}

/// Grows older by one grace period after the other.
unsafe fn grow_again(head: NonNull<Head>) {
    // SAFETY: `queue` has queued it.
    let object = unsafe { object_of(head) };
    if !grow(object) {
        queue(object, grow_again);
    }
}

unsafe fn grow_once(head: NonNull<Head>) {
    // SAFETY: `queue` has queued it.
    let object = unsafe { object_of(head) };
    object.age.fetch_add(1, Release);
}

/// A section: finds an object, and looks at it again after `dwell`.
fn look(slot: u64, what: What, dwell: impl FnOnce()) {
    let _section = Section::new();
    // SAFETY: objects are never freed as memory.
    let Some(object) = (unsafe { CURRENT[slot as usize].load(Acquire).as_ref() }) else { return };
    watch_object(object, what, dwell);
}

/// In a section, looks at an object, and again after `dwell`.
fn watch_object(object: &Object, what: What, dwell: impl FnOnce()) {
    let uses = object.uses.load(Relaxed);
    dwell();
    let age = object.age.load(Acquire) as usize;
    let is_same = object.uses.load(Relaxed) == uses;
    add(&COUNTS[this().id].found[if is_same { age.min(AGES) } else { AGES }]);
    count(what);
}

/// The owner of an object, which is given back when this is dropped.
struct Owner(&'static Object);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.age.store(AGES as u32, Release);
        give(self.0);
    }
}

// SAFETY: objects stay in their place; whoever takes a free one is its one owner, and its head is
// at its beginning.
unsafe impl NonNullPtr for Owner {
    type Target = Object;
    type Ref<'a> = &'a Object;

    const ALIGN_BITS: u32 = align_of::<Object>().trailing_zeros();

    fn into_raw(self) -> NonNull<Object> {
        NonNull::from(core::mem::ManuallyDrop::new(self).0)
    }

    unsafe fn from_raw(raw: NonNull<Object>) -> Self {
        // SAFETY: objects are never freed as memory.
        Self(unsafe { raw.as_ref() })
    }

    unsafe fn raw_as_ref<'a>(raw: NonNull<Object>) -> &'a Object {
        // SAFETY: as above.
        unsafe { raw.as_ref() }
    }

    fn ref_as_raw(reference: &Object) -> NonNull<Object> {
        NonNull::from(reference)
    }

    unsafe fn head_of(raw: NonNull<Object>) -> NonNull<Head> {
        raw.cast()
    }

    unsafe fn of_head(head: NonNull<Head>) -> NonNull<Object> {
        head.cast()
    }
}

/// Reads the cell, and replaces what is in it, or takes an object that readers find elsewhere out
/// of there, to be dropped later.
fn use_cell() {
    let hart = this();
    let guard = CELL.read();
    if let Some(object) = guard.get() {
        watch_object(object, What::Cell, || spin(hart.roll(8 * TICK)));
    }
    if hart.roll(4) == 0 {
        let old = replace(hart.roll(SLOTS as u64) as usize);
        return drop(old.map(|old| RcuDrop::<_, Board>::new(Owner(old))));
    }
    let Some(new) = take() else { return };
    let new = Some(Owner(new));
    match hart.roll(3) {
        0 => drop(guard.compare_exchange(new)),
        1 => CELL.update(new),
        _ => drop(guard.compare_exchange(None)),
    }
}

/// What a handler of an interrupt reads.
pub(crate) fn handler() {
    look(this().roll(SLOTS as u64), What::Handler, || dwell(32, 6));
}

/// A simulated NMI: it may come within any hook that reads the clock.
pub(crate) fn nmi() {
    let interrupt = RCU.nmi_enter();
    look(this().roll(SLOTS as u64), What::Nmi, || {
        RCU.poll(RCU.cookie());
        dwell(512, 3);
    });
    RCU.nmi_exit(interrupt);
}

/// A simulated NMI that comes in user mode, in the idle loop, or in neither.
pub(crate) fn nmi_from(is_user: bool, is_idle: bool) {
    match (is_user, is_idle) {
        (true, _) => count(What::NmiInUser),
        (_, true) => count(What::NmiInIdle),
        _ => {}
    }
    nmi();
}

/// Once in so many times, stays in a section for up to so many ticks: a grace period that does not
/// wait for it ends meanwhile.
fn dwell(times: u64, ticks: u64) {
    if this().roll(times) == 0 {
        spin(this().roll(ticks * TICK));
    }
}

fn spin(time: u64) {
    let until = sbi::time() + time;
    while sbi::time() < until {
        core::hint::spin_loop();
    }
}

fn read() {
    let hart = this();
    let ticks = match hart.roll(256) {
        0..4 => 60,
        4..16 => 8,
        16..64 => 1,
        _ => 0,
    };
    look(hart.roll(SLOTS as u64), What::Section, || spin(hart.roll(ticks * TICK + 100)));
}

/// Replaces an object. Returns the old one, if there was one.
fn replace(slot: usize) -> Option<&'static Object> {
    let Some(new) = take() else {
        count(What::NoObject);
        return None;
    };
    count(What::Update);
    let old = CURRENT[slot].swap(ptr::from_ref(new).cast_mut(), AcqRel);
    // SAFETY: objects are never freed as memory.
    let old = unsafe { old.as_ref() }?;
    old.age.store(1, Release);
    Some(old)
}

/// This hart stops, and leaves callbacks to the one that buries it: of all that readers have found
/// just now.
pub(crate) fn leave() {
    for old in (0..SLOTS).filter_map(replace) {
        queue(old, grow_again);
    }
}

/// Replaces an object, and waits for nothing.
fn renew() {
    if let Some(old) = replace(this().roll(SLOTS as u64) as usize) {
        queue(old, grow_again);
    }
}

/// Replaces an object, and waits for grace periods until it may be used again, or has it wait.
fn update() {
    let slot = this().roll(SLOTS as u64) as usize;
    let Some(old) = replace(slot) else { return };
    loop {
        match this().roll(8) {
            0 => {
                count(What::Synchronize);
                RCU.synchronize().expect("in no section");
            }
            1 => {
                count(What::Expedited);
                RCU.synchronize_expedited().expect("in no section");
            }
            2 => poll_cookie(),
            3 => {
                count(What::Barrier);
                let age = old.age.load(Relaxed);
                queue(old, grow_once);
                RCU.barrier().expect("in no section");
                assert_eq!(old.age.load(Acquire), age + 1, "the callback has not run");
                if age as usize + 1 == AGES {
                    return give(old);
                }
                continue;
            }
            _ => return queue(old, grow_again),
        }
        if grow(old) {
            return;
        }
    }
}

/// Looks at a cookie for a while; then waits for it, for it may be that nobody else does.
fn poll_cookie() {
    count(What::Cookie);
    let cookie = RCU.cookie();
    for _ in 0..20 {
        if RCU.poll(cookie) {
            return;
        }
        thread::sleep_ticks(1);
    }
    RCU.wait(cookie).expect("in no section");
}

/// Interrupts another hart, which passes through its scheduler, perhaps after a simulated NMI.
fn disturb() {
    count(What::Interrupt);
    let other = this().roll(THERE.load(Relaxed) as u64) as usize;
    hart::of(other).need_resched.store(true, Relaxed);
    if this().roll(2) == 0 {
        // Release: pairs with the Acquire of `on_trap`.
        hart::of(other).nmi.store(true, Release);
    }
    sbi::interrupt(1 << other);
}

/// A program in user mode, of up to 2,000,000 instructions: 16 ticks at 1,000 Hz where they are
/// counted.
fn run_program() {
    unsafe extern "C" {
        fn enter_user(rounds: u64);
    }
    count(What::User);
    let rounds = 1 + this().roll(1_000_000);
    let _irq = hart::irqs_off();
    RCU.user_enter();
    // SAFETY: interrupts are off, and the hook has been called; it returns by a trap.
    unsafe { enter_user(rounds) };
}

/// Makes this hart's actors. One waits for nothing but the time, so that there are always sections.
pub(crate) fn make() {
    thread::make(0, When::Now, || act(renew));
    (1..ACTORS).for_each(|thread| thread::make(thread, When::Now, || act(update)));
}

/// Does what the dice say, until the torture is over.
fn act(mainly: fn()) -> ! {
    while !IS_READY.load(Acquire) {
        thread::sleep_ticks(1);
    }
    while !IS_OVER.load(Relaxed) {
        match this().roll(32) {
            0..14 => read(),
            14..19 => mainly(),
            19..22 => disturb(),
            22..24 => thread::yields(),
            24 => run_program(),
            25 => use_cell(),
            rest => {
                count(What::Sleep);
                thread::sleep_ticks(this().roll(if rest == 26 { 64 } else { 6 }));
            }
        }
    }
    ENDED.fetch_add(1, Release);
    thread::sleep(When::Never);
    unreachable!("nobody wakes it");
}

/// Whether all that can happen has happened: else nothing has been shown.
fn is_complete(harts: usize) -> bool {
    let has_been = |what| {
        let may_lack =
            what == What::NoObject as usize || what == What::Hotplug as usize && harts == 1;
        may_lack || sum(|counts| &counts.of[what]) != 0
    };
    (0..NAMES.len()).all(has_been)
        // One hart alone replaces nothing while a section is open there.
        && (harts == 1 || sum(|counts| &counts.found[1]) != 0)
        && (0..harts).any(|hart| hart::of(hart).tick_stops.load(Relaxed) != 0)
}

/// One hart after the other, but for hart 0, stops and starts, until the torture is over.
fn plug(harts: usize, until: u64) {
    while sbi::time() < until || !is_complete(harts) {
        let hart = this();
        thread::sleep_ticks(1 + hart.roll(20));
        if harts > 1 {
            let other = 1 + hart.roll(harts as u64 - 1) as usize;
            count(What::Hotplug);
            hotplug::stop(other);
            thread::sleep_ticks(hart.roll(20));
            hotplug::start(other);
        }
    }
}

/// The thread of hart 0 that begins the torture, ends it, and says what came of it.
pub(crate) fn main() -> ! {
    let harts = all_harts();
    let (begun, seconds) = (sbi::time(), parameters().seconds);
    say!("torture: {harts} harts, {HZ} Hz, {seconds} s, seed {}", parameters().seed);
    for (hart, objects) in ALL.iter().enumerate().take(harts) {
        for object in objects {
            object.next.store(FREE[hart].load(Relaxed), Relaxed);
            FREE[hart].store(ptr::from_ref(object).cast_mut(), Relaxed);
        }
    }
    let first = RCU.cookie();
    // Release: pairs with the Acquire of `act`, which then finds the free objects.
    IS_READY.store(true, Release);
    let until = begun + seconds * SECOND;
    watch::END.store(until, Relaxed);
    plug(harts, until);
    IS_OVER.store(true, Relaxed);
    // Acquire: pairs with the Release of `act`; all that the actors did comes before.
    while ENDED.load(Acquire) < (harts * ACTORS) as u64 {
        thread::sleep_ticks(1);
    }
    CELL.update(None);
    // Each object queues itself again until it is old enough.
    for _ in 0..=AGES {
        RCU.barrier().expect("in no section");
    }
    let is_ok = tell(harts, RCU.poll(first));
    if !is_ok {
        watch::report();
    }
    sbi::power_off(is_ok);
}

/// Prints what was counted, and returns whether it is right, and a grace period has ended.
fn tell(harts: usize, has_ended: bool) -> bool {
    for (what, name) in NAMES.iter().enumerate() {
        say!("{name:>18}: {}", sum(|counts| &counts.of[what]));
    }
    let all = || (0..harts).map(hart::of);
    say!("{:>18}: {}", "ticks", all().map(|hart| hart.ticks.load(Relaxed)).sum::<u64>());
    let stops = all().map(|hart| hart.tick_stops.load(Relaxed)).sum::<u64>();
    say!("{:>18}: {stops}", "ticks stopped");
    let seen = (0..1_000).find_map(|_| RCU.snapshot()).expect("all is still");
    say!("{:>18}: {:?}", "grace periods", seen.sequence);
    say!("{:>18}: {}", "misuses", seen.misuses.0);
    let found: [u64; AGES + 1] = core::array::from_fn(|age| sum(|counts| &counts.found[age]));
    say!("{:>18}: {found:?}", "ages found");
    let mut free = 0;
    for list in &FREE {
        // Relaxed: actors have ended, and the last barrier came after all callbacks.
        let mut next = list.load(Relaxed);
        // SAFETY: objects are never freed as memory.
        while let Some(object) = unsafe { next.as_ref() } {
            free += 1;
            next = object.next.load(Relaxed);
        }
    }
    let current = CURRENT.iter().filter(|slot| !slot.load(Relaxed).is_null()).count();
    let lost = harts * OBJECTS - free - current;
    say!("{:>18}: {lost} of {}", "objects lost", harts * OBJECTS);
    let bytes =
        (0..harts).filter_map(|hart| RCU.cpu_snapshot(hart)).map(|seen| seen.bytes).sum::<u64>();
    let wrongs = [
        (found[2..].iter().any(|&found| found != 0), "readers found objects that are too old"),
        (lost != 0, "objects are lost"),
        (seen.misuses.0 != 0, "hooks were misused"),
        (bytes != 0, "bytes are said to wait"),
        (!has_ended || !is_complete(harts), "not all has happened"),
    ];
    let mut is_ok = true;
    for (_, what) in wrongs.iter().filter(|(is_so, _)| *is_so) {
        say!("wrong: {what}");
        is_ok = false;
    }
    is_ok
}
