//! The orderly end of the process: `main` returns, or somebody calls `exit`.
//!
//! The C library calls us on the thread that ends the process, after the destructors of its thread-locals;
//! the other threads are still running. `_exit`, `abort` and signals end a process without it.

use std::sync::Once;

/// Has `f` called at the orderly end of the process, once, however often this is called. There is one
/// such function: those of later calls are ignored. In a child made by `fork` it is called as well.
///
/// # Panics
/// If the system has no memory to remember it.
pub(crate) fn at_exit(f: extern "C" fn()) {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| imp::install(f));
}

#[cfg(unix)]
mod imp {
    /// Registers the function for good.
    pub(super) fn install(f: extern "C" fn()) {
        // SAFETY: a function of the right type that lives as long as the code it is part of.
        let result = unsafe { libc::atexit(f) };
        assert!(result == 0, "quiescence: atexit fails with error {result}: out of memory");
    }
}

#[cfg(not(unix))]
mod imp {
    /// Not here: what waits when the process ends is not run.
    pub(super) fn install(f: extern "C" fn()) {
        let _ = f;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    const TEST: &str = "os::exit::tests::what_is_asked_for_is_called_once_at_the_end";

    static CALLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn say_how_often() {
        println!("called {} before", CALLED.fetch_add(1, SeqCst));
    }

    extern "C" fn never() {
        println!("the second function");
    }

    #[test]
    fn what_is_asked_for_is_called_once_at_the_end() {
        if std::env::var_os("ROLE").is_some() {
            super::at_exit(say_how_often);
            super::at_exit(say_how_often);
            super::at_exit(never);
            return println!("main ends");
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again.args([TEST, "--exact", "--nocapture"]).env("ROLE", "child");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let (_, at_the_end) = said.split_once("main ends").expect(&said);
        assert_eq!(at_the_end.matches("called 0 before").count(), 1, "{said}");
        assert!(!said.contains("called 1") && !said.contains("second"), "{said}");
    }
}
