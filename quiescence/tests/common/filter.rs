//! System calls that the system does not do for this process.
//!
//! The library's unit tests include this file, too.

#![allow(dead_code, reason = "each of them needs a part of it")]

/// From now on this system call fails with EPERM in this process; if `first` is given, only with
/// such a first argument.
pub(crate) fn forbid(call: libc::c_long, first: Option<u32>) {
    filter(call, first, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
}

/// The same, with an answer of the caller's.
pub(crate) fn filter(call: libc::c_long, first: Option<u32>, answer: u32) {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let unless = |k, skip| libc::sock_filter { code: 0x15, jt: 0, jf: skip, k };
    let mut filter =
        vec![statement(0x20, 0), unless(call as u32, if first.is_some() { 3 } else { 1 })];
    if let Some(first) = first {
        filter.extend([statement(0x20, 16), unless(first, 1)]); // the low half of the argument
    }
    filter.extend([answer, libc::SECCOMP_RET_ALLOW].map(|answer| statement(0x06, answer)));
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: a plain flag of the process.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
    // SAFETY: the program outlives the call, which copies it.
    assert_eq!(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) }, 0);
}
