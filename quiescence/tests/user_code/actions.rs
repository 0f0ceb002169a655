//! What user code does at each place, one after the other: [`Action`]. After each of them nothing
//! has been freed under a guard, nothing is lost, and a barrier, a fork and the exit end.

use crate::common::*;
use std::any::Any;
use std::thread::ThreadId;

use quiescence::__private::here;
use quiescence::{ArcCell, hazard};

use super::table::{In, Panics, ROWS, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Panic,
    KeepGuard,
    DropKept,
    Retire,
    Synchronize,
    Barrier,
    EndDomain,
    Fork,
    Forget,
}

const ACTIONS: [Action; 10] = [
    Action::Nothing,
    Action::Panic,
    Action::KeepGuard,
    Action::DropKept,
    Action::Retire,
    Action::Synchronize,
    Action::Barrier,
    Action::EndDomain,
    Action::Fork,
    Action::Forget,
];

/// What the next piece of user code at a place is to do, if it is called on that thread.
static ARMED: Mutex<Option<(&Row, Action, ThreadId)>> = Mutex::new(None);
/// What user code has found wrong, which may be where panics are caught.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// Objects that were retired, and those of them that have been dropped.
static RETIRED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static GLOBAL: LazyLock<Domain<quiescence::tag::Global>> = LazyLock::new(Domain::global);
/// A domain beside the global one.
static OTHER: LazyLock<Domain> = LazyLock::new(Domain::new);

/// A guard, and a mark of whether what was retired under it has been dropped.
type Kept = (Box<dyn Any>, Arc<AtomicBool>);

thread_local! {
    static KEPT: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

/// An object that is retired.
struct Canary(Arc<AtomicBool>);

impl Canary {
    fn new() -> Box<Self> {
        RETIRED.fetch_add(1, SeqCst);
        Box::new(Self(Arc::default()))
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
        DROPPED.fetch_add(1, SeqCst);
    }
}

fn check(is_so: bool, what: &str) {
    if !is_so {
        FAILURES.lock().unwrap().push(what.to_owned());
    }
}

/// A thread does what it is to do, which may be another thread than that of the test.
static IS_ACTING: AtomicBool = AtomicBool::new(false);

/// User code, at whatever place.
pub(super) fn act() {
    let mut armed = ARMED.lock().unwrap();
    let Some((row, action, thread)) = *armed else { return };
    let is_here = thread::current().id() == thread || row.is_elsewhere;
    if here() != Some(row.site) || !is_here {
        return;
    }
    IS_ACTING.store(true, SeqCst);
    let _acting = OnDrop(|| IS_ACTING.store(false, SeqCst));
    *armed = None;
    drop(armed);
    super::reach::let_go();
    let is_refused = |f: fn()| catch_unwind(f).is_err();
    match action {
        Action::Nothing => {}
        Action::Panic => panic!("on purpose"),
        Action::KeepGuard => keep(&GLOBAL),
        Action::DropKept => drop(KEPT.take()),
        Action::Retire => {
            let is_taken = quiescence::retire(Canary::new()).is_ok();
            check(is_taken && OTHER.retire(Canary::new()).is_ok(), "an object was refused");
        }
        Action::Synchronize => {
            let expected = row.within == In::Section;
            check(is_refused(|| Domain::global().synchronize()) == expected, "synchronize");
            check(!is_refused(|| OTHER.synchronize()), "synchronize in another domain");
        }
        Action::Barrier => {
            let expected = row.within != In::Nothing;
            check(is_refused(|| Domain::global().barrier()) == expected, "barrier");
        }
        Action::EndDomain => {
            let domain = Domain::new();
            check(domain.retire(Canary::new()).is_ok(), "an object was refused");
            let canary = Canary::new();
            check(domain.call(move || drop(canary)).is_ok(), "a closure was refused");
            drop(domain);
        }
        Action::Fork => fork(thread),
        Action::Forget => {
            let mut future = Box::pin(Domain::global().synchronize_async());
            let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            std::mem::forget(future);
            let cell = ArcCell::from_pointee(1);
            std::mem::forget(cell.load());
            cell.store(Arc::new(2));
        }
    }
}

/// Begins a section, retires something in it, and keeps it.
fn keep<K: quiescence::tag::DomainTag>(domain: &'static Domain<K>) {
    let guard: Box<dyn Any> = Box::new(domain.read());
    let canary = Canary::new();
    let mark = Arc::clone(&canary.0);
    check(domain.retire(canary).is_ok(), "an object was refused");
    KEPT.with_borrow_mut(|kept| kept.push((guard, mark)));
}

/// The child continues with the test, and ends with the cell; the parent waits for it.
fn fork(thread: ThreadId) {
    // SAFETY: the child has this thread only, and ends by `_exit`. What it uses of the library is
    // meant to work after a fork; glibc's allocator does.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: a child that waits for ever is killed.
        unsafe { libc::alarm(30) };
        IS_CHILD.store(true, SeqCst);
        if thread::current().id() != thread {
            let is_whole = catch_unwind(|| OTHER.barrier()).is_ok();
            end_child(is_whole);
        }
        return;
    }
    check(status_of(child) == 0, "the child has failed");
}

/// Everything that was retired, in whatever domain, is dropped; what other threads do of it is
/// waited for.
fn drop_all() {
    Domain::global().barrier();
    OTHER.barrier();
    hazard::barrier();
    until(|| DROPPED.load(SeqCst) == RETIRED.load(SeqCst));
}

/// Whether what is kept is there still, also after others have driven the grace period.
fn kept_is_there() -> bool {
    let cookie = Domain::global().start_poll();
    let polls = move || (0..200).any(|_| Domain::global().poll(cookie));
    let is_over = thread::spawn(polls).join().unwrap();
    KEPT.with_borrow(|kept| !is_over && kept.iter().all(|(_, mark)| !mark.load(SeqCst)))
}

/// Has user code do that at the place: once, however often that takes, since other threads may be
/// faster.
fn reached(row: &'static Row, action: Action) -> thread::Result<()> {
    for _ in 0..1_000 {
        *ARMED.lock().unwrap() = Some((row, action, thread::current().id()));
        let outcome = catch_unwind(row.reach);
        super::reach::let_go();
        let armed = ARMED.lock().unwrap().take();
        if armed.is_none() {
            until(|| !IS_ACTING.load(SeqCst));
            return outcome;
        }
    }
    panic!("{:?} is not reached by {}", row.site, row.by);
}

fn run_cell(row: &'static Row, action: Action) {
    if action == Action::DropKept {
        // What waits for a grace period is refused in a section of the same domain.
        if row.waits { keep(&*OTHER) } else { keep(&GLOBAL) }
    }
    let outcome = reached(row, action);
    match action {
        Action::Panic => {
            assert_eq!(outcome.is_err(), row.panics == Panics::Through, "a panic's way");
        }
        Action::KeepGuard => {
            assert!(row.waits || outcome.is_ok(), "where a guard is kept");
            assert!(kept_is_there(), "freed under a guard");
            drop(KEPT.take());
        }
        _ => assert!(outcome.is_ok(), "it panics"),
    }
    assert_eq!(here(), None);
    assert!(KEPT.with_borrow(Vec::is_empty));
    drop_all();
    assert_eq!(*FAILURES.lock().unwrap(), [""; 0]);
    if !IS_CHILD.load(SeqCst) {
        in_child(drop_all);
        catch_unwind(AssertUnwindSafe(row.reach)).expect("later");
        drop_all();
    }
}

impl Row {
    /// Whether user code may do that here.
    fn allows(&self, action: Action) -> bool {
        match action {
            Action::Panic => self.panics != Panics::Never,
            // A guard is of the thread.
            Action::KeepGuard | Action::DropKept => !self.is_elsewhere,
            _ => true,
        }
    }
}

/// All actions at one place, in a process of their own.
pub(super) fn run_row(row: &'static Row) {
    let mut tuning = Domain::global().tuning();
    tuning.lazy = Duration::MAX; // the worker leaves callbacks to barriers
    Domain::global().tune(tuning);
    for action in ACTIONS {
        if row.allows(action) {
            let cell = catch_unwind(|| run_cell(row, action));
            if IS_CHILD.load(SeqCst) {
                end_child(cell.is_ok());
            }
            assert!(cell.is_ok(), "{:?} by {}: {action:?}", row.site, row.by);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "forks")]
fn user_code_does_as_it_likes() {
    const TEST: &str = "actions::user_code_does_as_it_likes";
    if let Some(role) = role() {
        return run_row(&ROWS[role.parse::<usize>().unwrap()]);
    }
    // Sixteen at a time, since most of them sleep.
    let next = Mutex::new(ROWS.iter().enumerate().filter(|(_, row)| row.is_there()));
    let failed = Mutex::new(Vec::new());
    let run = || {
        while let Some((number, row)) = { next.lock().unwrap().next() } {
            let output = again(TEST, &number.to_string(), &[]);
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                failed.lock().unwrap().push((row.site, row.by, output.status, said));
            }
        }
    };
    threads(16, |_| run());
    for (site, by, status, said) in failed.lock().unwrap().iter() {
        eprintln!("{site:?} by {by}: {status}\n{said}");
    }
    assert!(failed.lock().unwrap().is_empty());
}
