//! A handler that is replaced while signals arrive, as a module of the kernel replaces its handler
//! of non-maskable interrupts: each signal runs one handler, and none runs one that was freed.

#[cfg(unix)]
mod signals {
    use std::ptr;
    use std::sync::atomic::AtomicPtr;
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::thread;

    use quiescence::Srcu;

    struct Handler {
        /// Signals that it has handled.
        handled: AtomicU64,
    }

    /// Signal handlers may use its sections (S-2), also in a thread that has never been a reader.
    static SECTIONS: Srcu = Srcu::named("signal handlers");
    static CURRENT: AtomicPtr<Handler> = AtomicPtr::new(ptr::null_mut());

    extern "C" fn on_signal(_: libc::c_int) {
        let _section = SECTIONS.read();
        // SAFETY: what is replaced is freed when this section has ended.
        if let Some(handler) = unsafe { CURRENT.load(Acquire).as_ref() } {
            handler.handled.fetch_add(1, Relaxed);
        }
    }

    /// Puts another handler in the place of the old one, which no signal runs any more then.
    fn replace(new: Option<Box<Handler>>) -> Option<Box<Handler>> {
        let old = CURRENT.swap(new.map_or(ptr::null_mut(), Box::into_raw), AcqRel);
        SECTIONS.synchronize();
        // SAFETY: of a box, and no section has it since the grace period.
        (!old.is_null()).then(|| unsafe { Box::from_raw(old) })
    }

    pub(crate) fn run() {
        let new = || Some(Box::new(Handler { handled: AtomicU64::new(0) }));
        replace(new());
        // SAFETY: a handler of this type, which uses only what signal handlers may.
        unsafe { libc::signal(libc::SIGUSR1, on_signal as *const () as libc::sighandler_t) };
        let done = AtomicBool::new(false);
        let (sent, mut handled) = thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let mut sent = 0;
                while sent < 1_000 || !done.load(Relaxed) {
                    // SAFETY: runs the handler in this thread.
                    unsafe { libc::raise(libc::SIGUSR1) };
                    sent += 1;
                }
                sent
            });
            let replaced = (0..1_000).filter_map(|_| replace(new()));
            let handled: u64 = replaced.map(|old| old.handled.into_inner()).sum();
            done.store(true, Relaxed);
            (sender.join().expect("it sends"), handled)
        });
        handled += replace(None).map_or(0, |last| last.handled.into_inner());
        assert_eq!(handled, sent, "each signal was handled once");
        println!("{sent} signals beside 1000 replacements of their handler");
    }
}

fn main() {
    #[cfg(unix)]
    signals::run();
}
