//! `quiescence::liburcu_readers`: readers that follow liburcu's protocol by themselves, as programs
//! compiled against it do.
//!
//! `cargo xtask mutants` runs the stress where a step is missing: there it must fail.
#![cfg(target_os = "linux")]

use crate::common::{self, *};
use std::sync::atomic::{compiler_fence, fence};

use quiescence::liburcu_readers::{LiburcuDomain, Readers, Record, Surroundings, Words};
use quiescence::tuning::Fences;

/// A flavour of liburcu's, as a program sees it.
struct Flavor {
    domain: LiburcuDomain,
    readers: Readers,
    words: Words,
    /// How often a reader has found the driver asleep.
    woken: AtomicU32,
}

static BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDED: AtomicUsize = AtomicUsize::new(0);

const SURROUNDINGS: Surroundings = Surroundings {
    begin: || BEGUN.fetch_add(1, SeqCst) + 7,
    end: |begun| {
        assert!((7..7 + BEGUN.load(SeqCst)).contains(&begun));
        ENDED.fetch_add(1, SeqCst);
    },
};

impl Flavor {
    fn new(readers: Readers) -> &'static Self {
        let flavor: &'static Self = Box::leak(Box::new(Self {
            domain: LiburcuDomain::new("flavor", readers),
            readers,
            words: Words { ctr: AtomicU64::new(1), futex: AtomicU32::new(0) },
            woken: AtomicU32::new(0),
        }));
        // SAFETY: no thread has read; the words are never freed.
        unsafe { flavor.domain.attach(&raw const flavor.words, SURROUNDINGS) };
        flavor
    }

    fn reader(&'static self) -> Reader {
        Reader::new(self)
    }

    fn slave_barrier(&self) {
        if self.readers == Readers::Full || quiescence::tuning::fences() == Fences::Portable {
            fence(SeqCst);
        } else {
            compiler_fence(SeqCst);
        }
    }

    fn wake(&self) {
        if self.words.futex.load(Relaxed) == u32::MAX {
            self.words.futex.store(0, Relaxed);
            self.woken.fetch_add(1, SeqCst);
            let word = self.words.futex.as_ptr();
            // SAFETY: the word lives for ever; the call touches nothing else.
            unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAKE, 1, 0, 0, 0) };
        }
    }
}

/// liburcu's `waiting`, behind the part that is ours.
const WAITING_AT: usize = 144;

/// A thread that reads as if it had been compiled against liburcu. Its record is given back to the
/// system with it.
struct Reader {
    flavor: &'static Flavor,
    record: *mut Record,
}

impl Reader {
    fn new(flavor: &'static Flavor) -> Self {
        // SAFETY: all zeroes is a record that is not registered.
        let record: Box<Record> = Box::new(unsafe { std::mem::zeroed() });
        let record = Box::into_raw(record);
        // SAFETY: valid until `drop` has unregistered it; the protocol is followed below.
        unsafe { flavor.domain.register(record) };
        let reader = Self { flavor, record };
        if flavor.readers == Readers::Qsbr {
            reader.online();
        }
        reader
    }

    fn ctr(&self) -> &AtomicU64 {
        // SAFETY: valid until `drop`.
        unsafe { &*self.record }.word()
    }

    fn waiting(&self) -> &AtomicU32 {
        // SAFETY: in the record, which is valid until `drop`.
        let waiting = unsafe { self.record.byte_add(WAITING_AT) };
        // SAFETY: as above; an atomic on both sides.
        unsafe { AtomicU32::from_ptr(waiting.cast()) }
    }

    fn lock(&self) {
        if self.flavor.readers == Readers::Qsbr {
            return;
        }
        let word = self.ctr().load(Relaxed);
        if word & 0xffff_ffff == 0 {
            self.ctr().store(self.flavor.words.ctr.load(Acquire), Release);
            self.flavor.slave_barrier();
        } else {
            self.ctr().store(word + 1, Release);
        }
    }

    fn unlock(&self) {
        if self.flavor.readers == Readers::Qsbr {
            return self.quiescent_state();
        }
        let word = self.ctr().load(Relaxed);
        let outermost = word & 0xffff_ffff == 1;
        if outermost {
            self.flavor.slave_barrier();
        }
        self.ctr().store(word - 1, Release);
        if outermost && self.flavor.readers != Readers::Silent {
            self.flavor.slave_barrier();
            self.flavor.wake();
        }
    }

    fn announce(&self, word: u64) {
        fence(SeqCst);
        self.ctr().store(word, SeqCst);
        fence(SeqCst);
        if self.waiting().load(Relaxed) != 0 {
            self.waiting().store(0, Relaxed);
            fence(SeqCst);
            self.flavor.wake();
        }
        fence(SeqCst);
    }

    fn quiescent_state(&self) {
        let current = self.flavor.words.ctr.load(Acquire);
        if current != self.ctr().load(Relaxed) {
            self.announce(current);
        }
    }

    fn online(&self) {
        self.ctr().store(self.flavor.words.ctr.load(Acquire), Release);
        fence(SeqCst);
    }

    fn offline(&self) {
        self.announce(0);
    }

    fn synchronize(&self) {
        if self.flavor.readers != Readers::Qsbr {
            return self.flavor.domain.domain().synchronize();
        }
        self.offline();
        self.flavor.domain.domain().synchronize();
        self.online();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.flavor.readers == Readers::Qsbr {
            self.offline();
        }
        // SAFETY: registered by this thread, in no section.
        unsafe { self.flavor.domain.unregister(self.record) };
        // SAFETY: from a box, and no thread's any more.
        drop(unsafe { Box::from_raw(self.record) });
    }
}

const ALL: [Readers; 4] = [Readers::Light, Readers::Full, Readers::Qsbr, Readers::Silent];

/// Calls `f` while another thread is in a section, which ends when `f` calls its argument.
fn beside_a_section(flavor: &'static Flavor, nested: bool, f: impl FnOnce(&dyn Fn())) {
    let section = || {
        let reader = flavor.reader();
        reader.lock();
        if nested {
            reader.lock();
            reader.unlock();
        }
        OnDrop(move || reader.unlock())
    };
    while_held(section, f);
}

#[test]
fn a_section_holds_up_a_grace_period_until_it_ends() {
    for readers in ALL {
        let flavor = Flavor::new(readers);
        let domain = flavor.domain.domain();
        // For QSBR an inner unlock is a quiescent state.
        beside_a_section(flavor, readers != Readers::Qsbr, |leave| {
            let cookie = domain.start_poll();
            assert!((0..100).all(|_| !domain.poll(cookie)), "{readers:?}");
            leave();
            domain.wait(cookie);
        });
        assert!(domain.statistics().grace_periods != 0);
    }
}

/// No thread looks for it, but the one that leaves; or no thread wakes, and it polls again.
#[test]
fn a_sleeping_updater_notices_that_the_section_has_ended() {
    for readers in ALL {
        let flavor = Flavor::new(readers);
        let domain = flavor.domain.domain();
        beside_a_section(flavor, false, |leave| {
            thread::scope(|scope| {
                let updater = scope.spawn(|| domain.synchronize());
                until(|| readers == Readers::Silent || domain.statistics().sleeps != 0);
                leave();
                updater.join().unwrap();
            });
        });
        assert_eq!(flavor.words.futex.load(SeqCst), 0, "{readers:?}");
    }
}

/// Nor does one of Rust's in the domain leave it asleep, whose thread stays registered.
#[test]
fn the_end_of_a_rust_section_wakes_an_updater_that_sleeps_beside_liburcu_readers() {
    for readers in ALL {
        let flavor = Flavor::new(readers);
        let domain = flavor.domain.domain();
        tune(&domain, |tuning| tuning.stall_after = None); // nothing else wakes it
        thread::scope(|scope| {
            let guard = domain.read();
            let updater = scope.spawn(|| domain.synchronize());
            until(|| readers == Readers::Silent || domain.statistics().sleeps != 0);
            drop(guard);
            updater.join().unwrap();
        });
        assert_eq!(flavor.words.futex.load(SeqCst), 0, "{readers:?}");
    }
}

/// What a driver waits for, it waits for by system calls that are no cancellation points: were it
/// to vanish in one, no thread could drive the domain any more.
#[test]
#[cfg_attr(miri, ignore = "pthread_cancel")]
fn a_cancelled_driver_ends_its_grace_period_first() {
    struct Driver {
        domain: &'static LiburcuDomain,
        thread: AtomicU32,
        done: AtomicBool,
    }
    /// Cancels itself, which a first cancellation point would bring about.
    extern "C-unwind" fn drive(driver: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: below; it outlives the thread.
        let driver = unsafe { &*driver.cast::<Driver>() };
        // SAFETY: asks for its own number.
        let this = unsafe { libc::pthread_self() };
        // SAFETY: the thread itself, which is there.
        assert_eq!(unsafe { pthread_cancel(this) }, 0);
        driver.thread.store(thread_id(), SeqCst);
        driver.domain.domain().synchronize();
        driver.done.store(true, SeqCst);
        ptr::null_mut()
    }
    type Start = extern "C-unwind" fn(*mut libc::c_void) -> *mut libc::c_void;
    unsafe extern "C" {
        fn pthread_cancel(thread: libc::pthread_t) -> libc::c_int;
    }
    let flavor = Flavor::new(Readers::Silent); // the driver naps
    let domain = &flavor.domain;
    // Also finds out, once, what is to be found in files.
    beside_a_section(flavor, false, |leave| {
        let cookie = domain.domain().start_poll();
        leave();
        domain.domain().wait(cookie);
    });
    let driver = Driver { domain, thread: AtomicU32::new(0), done: AtomicBool::new(false) };
    let mut id = 0;
    beside_a_section(flavor, false, |leave| {
        // SAFETY: the same function, but for what it may do that this one does not: unwind, if it
        // is cancelled.
        let start = unsafe {
            std::mem::transmute::<Start, extern "C" fn(*mut libc::c_void) -> *mut libc::c_void>(
                drive,
            )
        };
        let argument = ptr::from_ref(&driver).cast_mut().cast();
        // SAFETY: joined below, before `driver` goes.
        let error = unsafe { libc::pthread_create(&raw mut id, ptr::null(), start, argument) };
        assert_eq!(error, 0);
        // Until it sleeps, or has come to its end.
        until(|| sleeps_or_is_gone(driver.thread.load(SeqCst)));
        leave();
        // SAFETY: created above, joined once.
        assert_eq!(unsafe { libc::pthread_join(id, ptr::null_mut()) }, 0);
    });
    assert!(driver.done.load(SeqCst), "it was cancelled in its grace period");
    domain.domain().synchronize();
}

/// Those who leave meanwhile wake the driver for nothing; it continues waiting for the one that
/// matters.
#[test]
fn others_that_leave_end_no_grace_period() {
    let flavor = Flavor::new(Readers::Light);
    let domain = flavor.domain.domain();
    beside_a_section(flavor, true, |leave| {
        thread::scope(|scope| {
            let (done, is_done) = mpsc::channel();
            scope.spawn(move || {
                domain.synchronize();
                done.send(()).unwrap();
            });
            let reader = flavor.reader(); // also: registers beside a grace period that waits
            let ended = (0..3).any(|_| {
                until(|| flavor.words.futex.load(SeqCst) == u32::MAX);
                let ended = is_done.try_recv().is_ok();
                reader.lock();
                reader.unlock();
                ended
            });
            leave();
            // After the section: a panic in it would wait for the driver for ever.
            assert!(!ended);
            is_done.recv().unwrap();
            // Not whether it is awake: it may have gone to sleep again.
            assert!(flavor.woken.load(SeqCst) >= 3);
        });
    });
}

/// No thread wakes a driver that has not said yet that it sleeps: it looks once more when it has.
#[test]
#[cfg(quiescence_mutants)]
fn a_reader_that_leaves_just_before_the_driver_sleeps_is_seen() {
    use mutants::Point;

    static ABOUT_TO: AtomicBool = AtomicBool::new(false);
    static HAS_LEFT: AtomicBool = AtomicBool::new(false);

    /// Stops the driver there until the reader has left.
    fn stop_once(point: Point) {
        if point == Point::BeforeMark && !ABOUT_TO.swap(true, SeqCst) {
            until(|| HAS_LEFT.load(SeqCst));
        }
    }

    in_its_own_process!();
    let flavor = Flavor::new(Readers::Light);
    mutants::install(stop_once);
    let (inside, is_over) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            let reader = flavor.reader();
            reader.lock();
            inside.wait();
            until(|| ABOUT_TO.load(SeqCst));
            reader.unlock();
            HAS_LEFT.store(true, SeqCst);
            // It is unregistered later: that would wake the driver.
            is_over.wait();
        });
        inside.wait();
        flavor.domain.domain().synchronize();
        is_over.wait();
    });
    assert!(HAS_LEFT.load(SeqCst), "the driver was to sleep");
}

/// What a reader may see: a word that is overwritten once no thread may see it any more.
const FRESH: u64 = 0x5eed;
const STALE: u64 = 0x6b6b_6b6b;

/// Readers that come and go, and updaters that wait for them, some of them readers themselves.
fn stress(readers: Readers, rounds: usize) {
    let flavor = Flavor::new(readers);
    let current = AtomicPtr::new(Box::into_raw(Box::new(AtomicU64::new(FRESH))));
    let spoiled: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let read = |reader: &Reader| {
        reader.lock();
        // SAFETY: never freed before the end of the test.
        let object = unsafe { &*current.load(Acquire) };
        for step in 0..8 {
            assert_eq!(object.load(Relaxed), FRESH, "{readers:?}: read after a grace period");
            if step == 4 {
                thread::yield_now();
            }
        }
        reader.unlock();
    };
    let come_and_go = |_| {
        || {
            let reader = flavor.reader();
            (0..50).for_each(|_| read(&reader));
        }
    };
    let update = |number| {
        let reader = (number == 0).then(|| flavor.reader());
        for _ in 0..rounds {
            let new = Box::into_raw(Box::new(AtomicU64::new(FRESH)));
            let old = current.swap(new, SeqCst);
            match &reader {
                Some(reader) => {
                    reader.synchronize();
                    read(reader);
                }
                None => flavor.domain.domain().synchronize(),
            }
            // SAFETY: freed at the end of the test only.
            unsafe { &*old }.store(STALE, Relaxed);
            spoiled.lock().unwrap().push(old.expose_provenance());
        }
    };
    beside(2, come_and_go, || threads(2, update));
    let last = current.into_inner();
    for object in spoiled.into_inner().unwrap().into_iter().chain([last.expose_provenance()]) {
        // SAFETY: from boxes, each once; all threads are gone.
        drop(unsafe { Box::from_raw(ptr::with_exposed_provenance_mut::<AtomicU64>(object)) });
    }
}

#[test]
fn nobody_reads_what_a_grace_period_has_ended() {
    for readers in ALL {
        // Silent ones read as light ones do; drivers only learn of their end more slowly.
        let updates = if readers == Readers::Silent { 100 } else { 400 };
        stress(readers, rounds(updates, 10));
    }
}

/// Rust's own guards and liburcu sections hold the same grace periods up.
#[test]
fn rust_reads_beside_liburcu_readers() {
    let flavor = Flavor::new(Readers::Light);
    let domain = flavor.domain.domain();
    beside_a_section(flavor, false, |leave| {
        common::beside_a_section(&domain, |end| {
            thread::scope(|scope| {
                let cookie = domain.start_poll();
                scope.spawn(move || domain.wait(cookie));
                leave();
                assert!((0..100).all(|_| !domain.poll(cookie)), "Rust's guard");
                until_an_updater_sleeps(&domain);
                end();
            });
        });
    });
}

#[test]
fn callbacks_have_their_surroundings() {
    let flavor = Flavor::new(Readers::Light);
    let domain = flavor.domain.domain();
    let (sender, receiver) = mpsc::channel();
    domain
        .call(move || sender.send(BEGUN.load(SeqCst) - ENDED.load(SeqCst)).unwrap())
        .expect("room");
    domain.barrier();
    assert!(receiver.recv().unwrap() != 0, "begun, and not ended");
}

/// A child made by `fork` has the forking thread's reader only, and no thread sleeps there.
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn a_child_has_its_own_reader_only() {
    for readers in ALL {
        let flavor = Flavor::new(readers);
        beside_a_section(flavor, false, |leave| {
            let mine = flavor.reader();
            in_child(|| {
                mine.synchronize(); // not held up by the section of a thread that is gone
                let cookie = flavor.domain.domain().start_poll();
                if readers != Readers::Qsbr {
                    mine.lock();
                    mine.unlock();
                } else {
                    mine.quiescent_state();
                }
                flavor.domain.domain().poll(cookie);
                drop(mine);
                flavor.domain.domain().synchronize();
            });
            leave();
        });
    }
}

/// What C has queued may look at what an ending process has destroyed already: it is lost, as with
/// liburcu.
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn what_is_queued_at_the_end_of_the_process_is_not_run() {
    if role().is_none() {
        let said = ends_again(this_test!(), "child", 0);
        assert!(said.contains("Rust's ran") && !said.contains("C's ran"), "{said}");
        return;
    }
    let flavor = Flavor::new(Readers::Light);
    let domain = flavor.domain.domain();
    tune(&domain, |tuning| tuning.lazy = Duration::from_secs(3_600));
    domain.call(|| eprintln!("C's ran")).expect("room");
    Domain::global().tune(domain.tuning());
    quiescence::call(|| eprintln!("Rust's ran")).expect("room");
    std::process::exit(0);
}
