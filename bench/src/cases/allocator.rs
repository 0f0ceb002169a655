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
    let kib = super::kernel_says("/proc/self/status", "VmData:")?;
    // SAFETY: it takes no arguments and locks each arena while it looks at it.
    let books = unsafe { libc::mallinfo2() };
    let others = (kib << 10).saturating_sub(writable_arenas()? + books.hblkhd as u64);
    Some(books.uordblks as u64 + books.hblkhd as u64 + others)
}

/// Bytes of all arenas that can be written to. An arena that becomes smaller keeps its mappings, so
/// that these are more than the sizes of arenas are.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn writable_arenas() -> Option<u64> {
    let (mut text, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: both live until the stream is closed.
    let stream = unsafe { libc::open_memstream(&raw mut text, &raw mut length) };
    if stream.is_null() {
        return None;
    }
    // SAFETY: the stream is open.
    let error = unsafe { libc::malloc_info(0, stream) };
    // SAFETY: as above, and it is closed once.
    if unsafe { libc::fclose(stream) } != 0 || text.is_null() {
        return None;
    }
    // SAFETY: closed, so that the text is complete and ends with a zero.
    let info = unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: it is the caller's, and freed once.
    unsafe { libc::free(text.cast()) };
    // The sums of all arenas come last.
    let (_, sum) = info.rsplit_once("<aspace type=\"mprotect\" size=\"").filter(|_| error == 0)?;
    sum.split_once('"')?.0.parse().ok()
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
    fn what_is_mapped_is_in_the_books_whoever_maps_it() {
        const MANY: usize = 64 << 20;
        let before = bytes_in_use_and_mapped().unwrap();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, anywhere.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), MANY, protection, flags, -1, 0) };
        assert_ne!(mapped, libc::MAP_FAILED);
        let held = bytes_in_use_and_mapped().unwrap() as i64 - before as i64;
        // SAFETY: mapped above, and used by no thread.
        assert_eq!(unsafe { libc::munmap(mapped, MANY) }, 0);
        // Other tests allocate and free meanwhile, but not so much.
        assert!(held > MANY as i64 / 2, "{held}");
    }

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
