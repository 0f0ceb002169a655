//! Workers of a tokio runtime as quiescent-state-based readers. Requires the feature `tokio`.
//!
//! A reference that a task loads in [`read`] cannot leave its closure. So no task holds a reference
//! across an `.await`, and a worker is at a quiescent state whenever the poll of a task has ended.
//! [`enable_rcu`](BuilderExt::enable_rcu) makes the runtime announce that, through its hooks:
//!
//! | hook | what it does |
//! |---|---|
//! | [`before_task_poll`] | registers the worker, or brings it online, if needed |
//! | [`after_task_poll`] | announces a quiescent state |
//! | [`on_thread_park`] | takes the worker offline |
//!
//! An offline worker delays no grace period, and grace periods need no `membarrier(2)` because of
//! it.
//!
//! A worker that unparks comes online with the first task that it polls. All other threads are
//! ordinary readers, for which [`read`] begins a [section](crate::read()): those of
//! `spawn_blocking`, the thread that calls `block_on`, a single-threaded runtime, and threads of no
//! runtime.
//!
//! ```
//! use quiescence::Rcu;
//! use quiescence::tokio as rcu;
//!
//! async fn route(routes: &Rcu<Vec<String>>, path: &str) -> bool {
//!     rcu::read(|section| routes.load(section).iter().any(|route| route == path))
//! }
//!
//! fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
//!     let mut builder = tokio::runtime::Builder::new_multi_thread();
//!     #[cfg(tokio_unstable)]
//!     rcu::BuilderExt::enable_rcu(&mut builder);
//!     builder.build()
//! }
//! # let routes = Rcu::new(vec![String::from("/")]);
//! # assert!(runtime().unwrap().block_on(async move { route(&routes, "/").await }));
//! ```
//!
//! A reference that outlives the closure does not compile:
//! ```compile_fail
//! async fn first(routes: &quiescence::Rcu<Vec<String>>) {
//!     let first = quiescence::tokio::read(|section| &routes.load(section)[0]);
//!     tokio::task::yield_now().await;
//!     println!("{first}");
//! }
//! ```
//!
//! # It needs `--cfg tokio_unstable`
//! Tokio has hooks around a poll only if it is compiled with `RUSTFLAGS="--cfg tokio_unstable"`.
//! Its builder then implements [`BuilderExt`]. Otherwise workers are ordinary readers, too.
//!
//! # Long polls
//! A grace period waits for all polls that began before it, whether they read or not. A poll that
//! blocks delays updaters: use [`block_in_place`] of this module in it. (Tokio's own hands the
//! worker's tasks to another thread, and calls no hook. The first thread stays online until the
//! runtime gives it a task again or ends it, after ten seconds by default.)
//!
//! # Updates in tasks
//! A call that waits for a grace period, such as [`synchronize`](crate::synchronize), panics in a
//! task, since the worker would wait for itself: use
//! [`Domain::synchronize_async`](crate::Domain::synchronize_async). An online worker is in a
//! section during the whole poll, so at the domain's limit the first value that a poll replaces
//! exceeds the limit, and **the second one panics**. At three quarters of the limit or more, the
//! end of a poll waits for a grace period, on the worker's thread.
//! [`Rcu::store_async`](crate::Rcu::store_async) does not panic, and waits without blocking it.
//!
//! # Source
//! Quiescent-state-based reclamation: Hart, McKenney, Demke Brown and Walpole, 2007, and liburcu's
//! `qsbr`. The crate `tokio_rcu` announces quiescent states by tokio's hooks.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::Location;

use ::tokio::runtime::{Handle, RuntimeFlavor};

use crate::domain::domain::Domain;
use crate::domain::guard::{self, Global, StaysOnItsThreadUnlikeSrcu};
use crate::domain::impls::shown_in_part;
use crate::domain::qsbr::Qsbr;
use crate::domain::tag::Section;
use crate::os::on_drop::OnDrop;
use crate::os::user_code::{self, Site};
use crate::reclaim::domain_state::{DomainState, Named};

thread_local! {
    /// Whether `READER` is online, and not in use.
    static ONLINE: Cell<bool> = const { Cell::new(false) };
    /// How many calls of `read` the thread is in, and whether its reader is in use. Then no hook
    /// announces anything: a closure may run a runtime of its own, whose tasks are polled on this
    /// thread, and so may a callback that runs at a quiescent state.
    static NESTING: Cell<usize> = const { Cell::new(0) };
    static READER: Registered = const { Registered(Cell::new(None)) };
}

/// The calling thread as a reader of the global domain, until the thread ends. None before its
/// first task, and while it is in use.
struct Registered(Cell<Option<Qsbr<Global>>>);

impl Drop for Registered {
    fn drop(&mut self) {
        // Destructors of other variables of this thread, which may read, come after this one.
        ONLINE.set(false);
    }
}

/// A section that [`read`] has begun: that of an online worker, or an ordinary one.
pub struct TaskGuard {
    _thread: StaysOnItsThreadUnlikeSrcu<Global>,
}

shown_in_part!([] TaskGuard);

// SAFETY: only `read` makes one, and lends it to a closure. Meanwhile the thread is in an ordinary
// section, or its reader is online and stays at its number: what takes it offline or announces a
// quiescent state are the functions of this module, which do neither while `NESTING` is not zero.
unsafe impl Section<Global> for TaskGuard {
    #[inline(always)]
    fn core(&self) -> *const DomainState {
        Global.core()
    }
}

/// Calls `f` in a section of the global domain.
///
/// # Progress and cost
/// Wait-free. On an online worker: a load, a comparison and two stores, on thread-local variables;
/// no fence, whichever kind of fence the process uses ([`Fences`](crate::tuning::Fences)).
/// Elsewhere as [`quiescence::read`](crate::read()).
///
/// # Panics
/// If `f` does.
#[inline]
#[track_caller]
pub fn read<R>(f: impl FnOnce(&TaskGuard) -> R) -> R {
    NESTING.set(NESTING.get() + 1);
    let _nested = OnDrop(|| NESTING.set(NESTING.get() - 1));
    let guard = TaskGuard { _thread: StaysOnItsThreadUnlikeSrcu((), PhantomData) };
    let _section = if ONLINE.get() { None } else { Some(guard::read()) };
    user_code::run(Site::Scope, || f(&guard))
}

/// Whether the calling thread is an online worker, where [`read`] begins no section.
#[inline]
pub fn is_online() -> bool {
    ONLINE.get()
}

/// Brings the calling thread online, if it is a worker of a multi-threaded runtime. For a hook of
/// your own; [`BuilderExt::enable_rcu`] installs it.
///
/// # Cost
/// A load and a comparison if the thread is online. Otherwise a store and a full fence; a thread's
/// first call also takes a lock.
#[inline]
pub fn before_task_poll() {
    if !ONLINE.get() {
        come_online();
    }
}

/// Announces that the calling thread holds no reference, if it is online. For a hook of your own;
/// [`BuilderExt::enable_rcu`] installs it.
///
/// Does nothing in a closure of [`read`].
///
/// # Progress and cost
/// As [`Qsbr::quiescent_state`](crate::Qsbr::quiescent_state).
#[inline]
pub fn after_task_poll() {
    if ONLINE.get() {
        announce();
    }
}

/// Takes the calling thread offline, if it is online. For a hook of your own;
/// [`BuilderExt::enable_rcu`] installs it.
///
/// Does nothing in a closure of [`read`].
#[inline]
pub fn on_thread_park() {
    if ONLINE.get() {
        go_offline();
    }
}

/// Like [`tokio::task::block_in_place`](::tokio::task::block_in_place), with the worker offline:
/// `f` may block without delaying a grace period. For the rest of the poll the thread is an
/// ordinary reader.
///
/// In a closure of [`read`] the worker stays online.
///
/// # Panics
/// As tokio's: in a single-threaded runtime.
pub fn block_in_place<R>(f: impl FnOnce() -> R) -> R {
    on_thread_park();
    user_code::run(Site::Scope, || ::tokio::task::block_in_place(f))
}

/// The thread's reader while it is in use; nothing is borrowed, since callbacks may run. Dropped,
/// also by a panic, it is the thread's again, and may be online.
struct Taken(Option<Qsbr<Global>>);

impl Taken {
    /// `None` if a closure of [`read`] is on, or a callback in an announcement, or the thread ends.
    fn take() -> Option<Self> {
        if NESTING.get() != 0 {
            return None;
        }
        let reader = READER.try_with(|reader| reader.0.take()).ok()?;
        ONLINE.set(false);
        NESTING.set(1);
        Some(Self(reader))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        NESTING.set(0);
        let reader = self.0.take();
        let is_online = reader.as_ref().is_some_and(Qsbr::is_online);
        // The error: the thread is ending, and so has the reader.
        if READER.try_with(|of_thread| of_thread.0.set(reader)).is_ok() {
            ONLINE.set(is_online);
        }
    }
}

#[cold]
fn come_online() {
    // Where one thread is the runtime, no hook tells when it leaves it.
    let is_worker = Handle::try_current()
        .is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if !is_worker {
        return;
    }
    if let Some(mut taken) = Taken::take() {
        let reader = taken.0.get_or_insert_with(|| Domain::global().qsbr());
        if !reader.is_online() {
            reader.enter(Location::caller());
        }
    }
}

fn announce() {
    if let Some(mut taken) = Taken::take()
        && let Some(online) = &mut taken.0
    {
        // It may be offline meanwhile, and run callbacks, which read.
        online.quiescent_state();
    }
}

#[cold]
fn go_offline() {
    if let Some(mut taken) = Taken::take()
        && let Some(reader) = &mut taken.0
    {
        reader.leave();
    }
}

/// What the builder of a runtime gets if tokio is compiled with `--cfg tokio_unstable`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no hooks around the poll of a task",
    note = "tokio's builder has them with RUSTFLAGS=\"--cfg tokio_unstable\""
)]
pub trait BuilderExt {
    /// Makes the workers of the runtime readers of the global domain, through tokio's hooks.
    ///
    /// Replaces the builder's hooks `on_before_task_poll`, `on_after_task_poll` and
    /// `on_thread_park`. Hooks that are set later replace these, and must call
    /// [`before_task_poll`],
    /// [`after_task_poll`] and [`on_thread_park`]: all three. A worker that comes online and
    /// announces no quiescent state delays every grace period.
    fn enable_rcu(&mut self) -> &mut Self;
}

#[cfg(tokio_unstable)]
impl BuilderExt for ::tokio::runtime::Builder {
    fn enable_rcu(&mut self) -> &mut Self {
        self.on_before_task_poll(|_| before_task_poll())
            .on_after_task_poll(|_| after_task_poll())
            .on_thread_park(on_thread_park)
    }
}
