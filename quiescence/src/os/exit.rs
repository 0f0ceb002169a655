//! The orderly end of the process: `main` returns, or a thread calls `exit`; and the threads of the
//! library, which are to end before it.
//!
//! The C library calls [`at_exit`]'s functions on the thread that ends the process, after the
//! destructors of its thread-locals; the other threads are still running. `_exit`, `abort` and
//! signals end a process without these calls.

use std::cell::Cell;
use std::thread::JoinHandle;

use super::signals;

thread_local! {
    /// Whether the thread is one of those that the end of the process [ends](super::forking), which
    /// is not waited for where such a thread calls `exit`. It says so itself as it begins. It does
    /// not wait for the worker, which it may be.
    pub(crate) static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

/// Starts a thread of the library, which takes no signal: handlers run on the program's threads.
/// If the system gives none, returns its `errno`.
pub(crate) fn start_thread(name: &str, run: Box<dyn FnOnce() + Send>) -> Result<(), i32> {
    let thread = std::thread::Builder::new().name(name.into());
    let started = signals::without(|| thread.spawn(run)).map(outlive);
    started.map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// A thread of the library's that works for one room. Under the lock of the room.
#[derive(Debug)]
pub(crate) struct OwnThread {
    is_there: bool,
    /// The process ends, and the thread is to end before it.
    pub(crate) is_to_end: bool,
}

impl OwnThread {
    pub(crate) const NONE: Self = Self { is_there: false, is_to_end: false };

    /// Starts it, unless it is there. Returns whether it is there now.
    pub(crate) fn start(&mut self, name: &str, run: fn()) -> bool {
        let run = move || {
            IS_OURS.set(true);
            run();
        };
        self.is_there = self.is_there || start_thread(name, Box::new(run)).is_ok();
        self.is_there
    }

    /// Asks it to end. Returns whether it is there.
    pub(crate) fn ask_to_end(&mut self) -> bool {
        self.is_to_end = self.is_there;
        self.is_there
    }

    /// Notes that the thread ends. Returns whether it was asked to.
    pub(crate) fn note_end(&mut self) -> bool {
        std::mem::replace(self, Self::NONE).is_to_end
    }
}

/// Has `f` called at the orderly end of the process, once for each call of this. In a child made by
/// `fork` it is called as well. Returns whether the system had the memory to remember it.
pub(crate) fn at_exit(f: extern "C" fn()) -> bool {
    #[cfg(miri)]
    return imp::install(f);
    // SAFETY: a function of the right type that lives as long as the code it is part of.
    #[cfg(all(unix, not(miri)))]
    return unsafe { libc::atexit(f) } == 0;
    // Not supported: callbacks that wait when the process ends are not run.
    #[cfg(not(any(unix, miri)))]
    return [f].len() == 1;
}

/// Has the orderly end of the process wait for the end of a thread, if the system (Miri) requires
/// it.
fn outlive(thread: JoinHandle<()>) {
    #[cfg(miri)]
    return imp::outlive(thread);
    #[cfg(not(miri))]
    drop(thread);
}

/// Miri has no `atexit`. The destructor of a thread-local of the main thread takes its place: the
/// first one made there, so the last one dropped. Miri rejects threads that outlive the main one:
/// those of the library are joined, however long that takes. (The functions wait for 200 ms at
/// most, by a clock that advances by as much in some ten thousand steps.)
#[cfg(miri)]
mod imp {
    use std::thread::JoinHandle;

    use crate::os::sync::{self, Mutex, Rank};

    static AT_EXIT: Mutex<Vec<extern "C" fn()>> = Mutex::new(Rank::AtExit, Vec::new());
    static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Rank::AtExit, Vec::new());

    fn take<T>(list: &Mutex<Vec<T>>) -> Vec<T> {
        std::mem::take(&mut *sync::lock(list))
    }

    struct Exit;

    impl Drop for Exit {
        fn drop(&mut self) {
            let functions = take(&AT_EXIT);
            let ask = || functions.iter().rev().for_each(|function| function());
            loop {
                let threads = take(&THREADS);
                // Asks the threads to end: after they were taken, as another thread that ends may
                // start one meanwhile, which is asked in the next round.
                ask();
                if threads.is_empty() {
                    break;
                }
                for thread in threads {
                    // Again, as the time of the functions may be over before they have the lock
                    // under which they ask.
                    while !thread.is_finished() {
                        ask();
                    }
                    // A thread that has panicked has printed a message.
                    drop(thread.join());
                }
            }
        }
    }

    thread_local! {
        static EXIT: Exit = const { Exit };
    }

    extern "C" fn on_the_main_thread() {
        EXIT.with(|_| ());
    }

    #[used]
    // SAFETY: a function of the type that this section contains.
    #[unsafe(link_section = ".init_array")]
    static BEFORE_MAIN: extern "C" fn() = on_the_main_thread;

    pub(super) fn install(f: extern "C" fn()) -> bool {
        sync::lock(&AT_EXIT).push(f);
        true
    }

    pub(super) fn outlive(thread: JoinHandle<()>) {
        sync::lock(&THREADS).push(thread);
    }
}

#[cfg(all(test, unix, not(miri)))]
mod tests {
    use crate::common::again::*;

    extern "C" fn first() {
        println!("the first function");
    }

    extern "C" fn second() {
        println!("the second function");
    }

    #[test]
    fn what_is_asked_for_is_called_at_the_end() {
        if role().is_some() {
            assert!(super::at_exit(first) && super::at_exit(second));
            return println!("main ends");
        }
        let output = again(this_test!(), "child", &[]);
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let (_, at_the_end) = said.split_once("main ends").expect(&said);
        for function in ["the first", "the second"] {
            assert_eq!(at_the_end.matches(function).count(), 1, "{said}");
        }
    }
}
