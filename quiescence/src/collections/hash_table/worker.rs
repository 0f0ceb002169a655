//! The thread that resizes tables: one for the whole process. It starts when there is work, and
//! ends some time after there is none.
//!
//! One *board*, under one lock that is held only for moments, says which tables wait for the
//! thread, and which are being resized, by it or by a caller of a resize function. A table's target
//! is written under that lock; so is the last comparison with it by the thread that works on the
//! table. So no request can come between that comparison and the end of the work, and none is lost.
//!
//! The thread that ends a table first checks the table's nodes, and is in no section then. So the
//! worker notes on the board when it goes through a table's list or frees its buckets, and does
//! neither while the table is *held*. Neither thread waits for readers meanwhile: a table may be
//! ended in a section, in a callback, or by an online QSBR thread.
//!
//! A fork takes the lock. The child does not have this thread: tables that were being worked on
//! wait again there, and every step can be repeated from the beginning. The next request starts the
//! thread. If a thread forks while it works on a table, as an allocator of the caller's may, it
//! finds in the child that it works on it no more.

use std::collections::VecDeque;
use std::ptr;
use std::time::Duration;

use super::allocator::{self, Source};
use crate::os::exit::OwnThread;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{self, Condvar, MutexGuard, Rank, const_unless_loom};
use crate::os::thread;

/// What the thread that resizes a table knows of it.
///
/// # Safety
/// `work_here` may be called on another thread, as long as [`Board`] says that the table is being
/// worked on.
pub(super) unsafe trait Work {
    /// Works until there is nothing to do, as the table's own thread.
    ///
    /// # Safety
    /// The table is on the board, as being worked on by the caller.
    unsafe fn work_here(&self);

    /// Whether there is nothing to do. It stays so while the board is locked.
    fn is_done(&self, board: &mut Board) -> bool;

    /// Where its memory is from.
    fn source(&self) -> Source;
}

/// A table that is being worked on.
struct Entry {
    table: *const dyn Work,
    /// The thread that works on it.
    by: usize,
    /// Its owner has given it up, and this is the owner's pointer: the thread that works on the
    /// table frees it.
    dying: Option<*mut dyn Work>,
    /// The thread that works on it is at its list, or frees buckets.
    used: bool,
}

/// Tables that wait to be resized, and tables that are being resized.
pub(super) struct Board {
    waiting: VecDeque<*const dyn Work>,
    busy: Vec<Entry>,
    /// Tables whose list and buckets must be left alone for a moment.
    held: Vec<*const dyn Work>,
    thread: OwnThread,
}

// SAFETY: the pointers are to tables, which are valid while they are here and may be worked on by
// any thread.
unsafe impl Send for Board {}

const_unless_loom! {
    static BOARD: ForkMutex<Board> = ForkMutex::new(Rank::Tables, Board {
        waiting: VecDeque::new(),
        busy: Vec::new(),
        held: Vec::new(),
        thread: OwnThread::NONE,
    });
    /// There is work.
    static WAITING: Condvar = Condvar::new();
    /// A table is off the board, or is not used any more, or not held.
    static DONE: Condvar = Condvar::new();
}

/// How long the thread waits for work before it ends.
const LINGERS: Duration = Duration::from_secs(1);

/// The board, locked.
pub(super) type Locked = MutexGuard<'static, Board>;

pub(super) fn lock() -> Locked {
    BOARD.lock()
}

/// Waits until the state of some table on the board has changed.
pub(super) fn wait(board: Locked) -> Locked {
    sync::wait(&DONE, board)
}

/// Keeps the thread that works on a table away from its list and buckets, until the table is
/// [released](release) or [given up](Board::give_up). The wait is for a few hundred buckets at
/// most, and for no reader.
pub(super) fn hold_off(table: *const dyn Work) {
    //~ no-hold
    let mut board = lock();
    // First, so that a worker with much to do does not begin again before us.
    board.held.push(table);
    while board.entry(table).is_some_and(|entry| entry.used) {
        //~ point table-awaited
        board = wait(board);
    }
}

/// Lets the thread that works on a table continue.
pub(super) fn release(table: *const dyn Work) {
    lock().forget_hold(table);
}

/// The thread that works on a table is about to go through its list, or to free buckets. Returns
/// `false` if it does not [work on it](Board::works_on) any more, and is to leave it alone.
pub(super) fn begin_use(table: *const dyn Work) -> bool {
    let mut board = lock();
    while board.is_held(table) {
        //~ point table-awaited
        board = wait(board);
    }
    let Some(entry) = board.own(table).filter(|entry| entry.dying.is_none()) else {
        return false;
    };
    entry.used = true;
    true
}

/// The thread has gone through the list, or freed the buckets.
pub(super) fn end_use(table: *const dyn Work) {
    let mut board = lock();
    if let Some(entry) = board.own(table) {
        entry.used = false;
    }
    if board.is_held(table) {
        DONE.notify_all();
    }
}

impl Board {
    fn is_held(&self, table: *const dyn Work) -> bool {
        self.held.iter().any(|held| ptr::addr_eq(*held, table))
    }

    fn forget_hold(&mut self, table: *const dyn Work) {
        self.held.retain(|held| !ptr::addr_eq(*held, table));
        DONE.notify_all();
    }

    fn entry(&mut self, table: *const dyn Work) -> Option<&mut Entry> {
        self.busy.iter_mut().find(|entry| ptr::addr_eq(entry.table, table))
    }

    /// The entry of a table that the calling thread works on.
    fn own(&mut self, table: *const dyn Work) -> Option<&mut Entry> {
        self.entry(table).filter(|entry| entry.by == thread::token())
    }

    /// Whether a thread works on the table. It will see what was requested under the lock.
    pub(super) fn is_busy(&mut self, table: *const dyn Work) -> bool {
        self.entry(table).is_some()
    }

    /// Whether the caller works on the table still: its owner has not given it up, and this is no
    /// child of the process in which the caller began.
    pub(super) fn works_on(&mut self, table: *const dyn Work) -> bool {
        self.own(table).is_some_and(|entry| entry.dying.is_none())
    }

    /// Enters a table as being worked on by the caller.
    pub(super) fn begin(&mut self, table: *const dyn Work) {
        self.waiting.retain(|other| !ptr::addr_eq(*other, table));
        self.busy.push(Entry { table, by: thread::token(), dying: None, used: false });
    }

    /// Takes a table off the board that the caller works on. Returns the owner's pointer if the
    /// owner has given it up: the caller frees it then.
    ///
    /// From here on the table may be gone. So the caller holds no reference to it, unless it knows
    /// that the owner does not give it up meanwhile.
    pub(super) fn end(&mut self, table: *const dyn Work) -> Option<*mut dyn Work> {
        let dying = self.own(table)?.dying;
        self.busy.retain(|entry| !ptr::addr_eq(entry.table, table));
        DONE.notify_all();
        dying
    }

    /// Asks the thread to work on a table, unless a thread does.
    pub(super) fn ask(&mut self, table: *const dyn Work) {
        if self.is_busy(table) {
            return;
        }
        if !self.waiting.iter().any(|other| ptr::addr_eq(*other, table)) {
            self.waiting.push_back(table);
        }
        self.start();
    }

    /// Gives up a table that is held. Returns whether the caller is to free it. The pointer is the
    /// owner's.
    pub(super) fn give_up(&mut self, table: *mut dyn Work) -> bool {
        self.forget_hold(table);
        self.waiting.retain(|other| !ptr::addr_eq(*other, table));
        let Some(entry) = self.entry(table) else {
            return true;
        };
        entry.dying = Some(table);
        false
    }

    /// Starts the thread, or wakes it. If the system provides no thread, the next request tries
    /// again.
    fn start(&mut self) {
        WAITING.notify_one();
        self.thread.start("rcu-resize", run);
    }
}

fn run() {
    let mut board = lock();
    loop {
        let Some(table) = board.waiting.pop_front() else {
            let mut late = false;
            while board.waiting.is_empty() && !board.thread.is_to_end && !late {
                (board, late) = sync::wait_at_most(&WAITING, board, Some(LINGERS));
            }
            if board.waiting.is_empty() {
                board.thread = OwnThread::NONE;
                return;
            }
            continue;
        };
        board.begin(table);
        drop(board);
        board = work_through(table);
    }
}

/// Works on a table until there is nothing to do, takes it off the board, and frees it if it has
/// been given up.
///
/// A reference to the table that is the argument of a function must not outlive the table. So each
/// call ends before the table is off the board, and the pointer that frees it is its owner's.
fn work_through(table: *const dyn Work) -> Locked {
    let mut board = loop {
        // SAFETY: on the board, as being worked on by this thread; a thread that gives a table up
        // looks at the board first.
        let work = unsafe { &*table };
        // SAFETY: as above.
        unsafe { work.work_here() };
        let mut board = lock();
        if work.is_done(&mut board) {
            break board;
        }
    };
    let Some(dying) = board.end(table) else { return board };
    drop(board);
    // SAFETY: from `Table::new`; its owner has given it up, and it is off the board.
    unsafe { allocator::end(dying) };
    lock()
}

impl AtFork for Board {
    /// No thread works on anything. The next request begins again what was begun.
    fn in_child(&mut self) {
        self.thread = OwnThread::NONE;
        self.held.clear();
        for entry in std::mem::take(&mut self.busy) {
            // A table that was given up is leaked here: no thread is left to free it.
            if entry.dying.is_none() {
                self.waiting.push_back(entry.table);
            }
        }
    }

    /// The thread ends once no table waits for it.
    fn end(&mut self) -> bool {
        WAITING.notify_one();
        self.thread.ask_to_end()
    }
}

/// In a child: starts the thread, if tables wait for it.
pub fn resume() {
    let mut board = lock();
    if !board.waiting.is_empty() {
        board.start();
    }
}
