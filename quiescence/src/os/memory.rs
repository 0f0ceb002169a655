//! Memory from the system, and how much of it this process may have.

use super::{calls, environment, files};

/// Memory of the process's own, all zero, that begins a page; `None` if the system has none. Asks
/// the system itself, and leaves `errno` as it is, so that a signal handler may call it.
///
/// It is given page by page, as it is written to: no huge pages, which would take all of it at
/// once.
pub(crate) fn map_zeroed(bytes: usize) -> Option<*mut u8> {
    let memory = calls::map(bytes, calls::READ_WRITE, calls::MAP_NORESERVE)?;
    // SAFETY: the mapping made above. A kernel without huge pages says no, to no harm.
    let _ = unsafe { calls::advise(memory, bytes, calls::MADV_NOHUGEPAGE) };
    Some(memory)
}

/// Gives it back.
///
/// # Safety
/// It came from [`map_zeroed`], is of this length, and no thread uses it.
pub(crate) use calls::unmap;

/// Bytes of a huge page, which Linux may give instead of small ones; elsewhere more than there are.
const HUGE_PAGE: usize =
    if cfg!(all(target_os = "linux", not(miri))) { 2 << 20 } else { usize::MAX };

/// A multiple of the pages of all systems.
const PAGE: usize = 65_536;

/// As [`map_zeroed`], for memory that will all be used: in huge pages, where the system has them.
/// Then it begins with one.
pub(crate) fn map_zeroed_huge(bytes: usize) -> Option<*mut u8> {
    let before = if bytes < HUGE_PAGE { 0 } else { HUGE_PAGE };
    let bytes = bytes.checked_next_multiple_of(PAGE)?;
    let all = bytes.checked_add(before)?;
    let mapped = calls::map(all, calls::READ_WRITE, 0)?;
    if before == 0 {
        return Some(mapped);
    }
    let skipped = mapped.addr().next_multiple_of(HUGE_PAGE) - mapped.addr();
    let memory = mapped.wrapping_add(skipped);
    let after = memory.wrapping_add(bytes);
    if skipped != 0 {
        // SAFETY: whole pages of the mapping made above, which nothing uses. It does not fail.
        unsafe { calls::unmap(mapped, skipped) };
    }
    if skipped != before {
        // SAFETY: as above.
        unsafe { calls::unmap(after, before - skipped) };
    }
    // SAFETY: the rest of the mapping. A kernel without huge pages says no, to no harm.
    let _ = unsafe { calls::advise(memory, bytes, calls::MADV_HUGEPAGE) };
    Some(memory)
}

/// Gives it back.
///
/// # Safety
/// It came from [`map_zeroed_huge`], is of this length, and no thread uses it.
pub(crate) unsafe fn unmap_huge(memory: *mut u8, bytes: usize) {
    // SAFETY: by the contract.
    unsafe { unmap(memory, bytes.next_multiple_of(PAGE)) };
}

/// Gives its pages back, and keeps the addresses: there is zero from then on, or what was there,
/// if the system does not care.
///
/// # Safety
/// It came from [`map_zeroed_huge`], is of this length, and what threads write to it meanwhile does
/// not matter.
pub(crate) unsafe fn forget_huge(memory: *mut u8, bytes: usize) {
    // SAFETY: whole pages of the mapping; by the contract.
    let _ = unsafe { calls::advise(memory, bytes.next_multiple_of(PAGE), calls::MADV_DONTNEED) };
}

/// Has the cache line of an address loaded, whatever that is.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, whatever the address is.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Bytes of memory of the machine, or of the process's control group if that is less; a guess of 1
/// GiB where the system does not say.
pub(crate) fn available_bytes() -> u64 {
    let machine = calls::machine_bytes().unwrap_or(1 << 30);
    let groups = files::read_all(format_args!("/proc/self/cgroup")).unwrap_or_default();
    groups.split(|byte| *byte == b'\n').filter_map(limit_of).fold(machine, u64::min)
}

/// The least limit on the way from a group, as a line of /proc/self/cgroup names it, to the root:
/// of version 2, or the memory controller of version 1, where they are usually mounted.
fn limit_of(line: &[u8]) -> Option<u64> {
    let mut parts = line.splitn(3, |byte| *byte == b':').skip(1);
    let (controllers, path) = (parts.next()?, std::str::from_utf8(parts.next()?).ok()?);
    let (root, file) = match controllers {
        b"" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(|byte| *byte == b',').any(|name| name == b"memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let mut least = u64::MAX;
    for end in 0..=path.len() {
        // Of "/a/b": "", "/a" and itself.
        if path.as_bytes().get(end).is_none_or(|byte| *byte == b'/') {
            let (group, mut text) = (path.get(..end)?, [0; 64]);
            let limit = files::read(format_args!("{root}{group}/{file}"), &mut text).ok();
            let bytes = limit.and_then(|limit| environment::parse(limit.trim_ascii()));
            least = least.min(bytes.unwrap_or(u64::MAX)); // "max" is no limit
        }
    }
    Some(least)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_system_says_how_much() {
        assert!(super::available_bytes() > 1 << 20);
    }
}
