//! The orderly end of the process: `main` returns, or somebody calls `exit`.
//!
//! The C library calls us on the thread that ends the process, after the destructors of its thread-locals;
//! the other threads are still running. `_exit`, `abort` and signals end a process without it.

/// Has `f` called at the orderly end of the process, as often as this is called. In a child made by `fork` it
/// is called as well. Answers whether the system had the memory to remember it.
pub(crate) fn at_exit(f: extern "C" fn()) -> bool {
    imp::install(f)
}

#[cfg(unix)]
mod imp {
    /// Registers the function for good.
    pub(super) fn install(f: extern "C" fn()) -> bool {
        // SAFETY: a function of the right type that lives as long as the code it is part of.
        unsafe { libc::atexit(f) == 0 }
    }
}

#[cfg(not(unix))]
mod imp {
    /// Not here: what waits when the process ends is not run.
    pub(super) fn install(f: extern "C" fn()) -> bool {
        let _ = f;
        true
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Command;

    const TEST: &str = "os::exit::tests::what_is_asked_for_is_called_at_the_end";

    extern "C" fn first() {
        println!("the first function");
    }

    extern "C" fn second() {
        println!("the second function");
    }

    #[test]
    fn what_is_asked_for_is_called_at_the_end() {
        if std::env::var_os("ROLE").is_some() {
            assert!(super::at_exit(first) && super::at_exit(second));
            return println!("main ends");
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again.args([TEST, "--exact", "--nocapture"]).env("ROLE", "child");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout);
        let (_, at_the_end) = said.split_once("main ends").expect(&said);
        for function in ["the first", "the second"] {
            assert_eq!(at_the_end.matches(function).count(), 1, "{said}");
        }
    }
}
