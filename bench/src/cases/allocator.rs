//! How much memory the process holds from its allocator.
//!
//! Rust's objects and liburcu's come from the same `malloc`, so glibc's own books count both alike,
//! with what the allocator adds, and at no cost to the loops that are measured, which a counting
//! allocator in between would have.

/// Bytes in use in all arenas, with the allocator's own headers. Nothing where the allocator keeps
/// no such books.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn bytes_in_use() -> Option<u64> {
    // SAFETY: it takes no arguments and locks each arena while it looks at it.
    let books = unsafe { libc::mallinfo2() };
    Some(books.uordblks as u64 + books.hblkhd as u64)
}

/// Bytes in use in all arenas, with the allocator's own headers. Nothing where the allocator keeps
/// no such books.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn bytes_in_use() -> Option<u64> {
    None
}

/// The same with what the process has of the kernel by itself: mappings that it can write to, and
/// that are not the allocator's. Nothing where one of the two does not say.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn bytes_in_use_and_mapped() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // SAFETY: it takes no arguments and locks each arena while it looks at it.
    let books = unsafe { libc::mallinfo2() };
    let others = (kib << 10).saturating_sub(books.arena as u64 + books.hblkhd as u64);
    Some(books.uordblks as u64 + books.hblkhd as u64 + others)
}

/// The same with what the process has of the kernel by itself. Nothing where one of the two does
/// not say.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn bytes_in_use_and_mapped() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_in_any_thread_is_in_the_books_until_it_is_freed() {
        // Other tests allocate meanwhile, but not so much.
        const MANY: usize = 1_000_000;
        let before = bytes_in_use().unwrap();
        let boxes: Vec<Box<[u64; 8]>> =
            std::thread::spawn(|| (0..MANY).map(|_| Box::new([1; 8])).collect()).join().unwrap();
        let held = bytes_in_use().unwrap() - before;
        assert!(held >= 64 * MANY as u64, "{held}");
        drop(boxes);
        let left = bytes_in_use().unwrap().saturating_sub(before);
        assert!(left < held / 2, "{left} of {held}");
    }
}
