//! What a program takes of memory.

/// Has this program use the system's allocator, with a look at what is asked of it and what goes
/// back: at layouts, and at layouts and what is in the memory.
macro_rules! watched_allocator {
    ($asked:expr, $given_back:expr) => {
        struct Watched;

        // SAFETY: the system's allocator does all of it.
        unsafe impl std::alloc::GlobalAlloc for Watched {
            unsafe fn alloc(&self, layout: std::alloc::Layout) -> *mut u8 {
                let asked: fn(std::alloc::Layout) = $asked;
                asked(layout);
                // SAFETY: by the contract.
                unsafe { std::alloc::System.alloc(layout) }
            }

            unsafe fn dealloc(&self, memory: *mut u8, layout: std::alloc::Layout) {
                let given_back: fn(*mut u8, std::alloc::Layout) = $given_back;
                given_back(memory, layout);
                // SAFETY: by the contract.
                unsafe { std::alloc::System.dealloc(memory, layout) }
            }
        }

        #[global_allocator]
        static ALLOCATOR: Watched = Watched;
    };
}

pub(crate) use watched_allocator;

/// Bytes of memory that this process has, its files' pages among them: exact. `statm` is not, since
/// it counts in batches of 32 pages a CPU.
#[cfg(target_os = "linux")]
pub(crate) fn resident() -> usize {
    kib_of("Rss:") << 10
}

/// Bytes that this process has written to, on the heap, on stacks or in its data. Pages of code are
/// not among them: the kernel maps as many as it likes, when it likes.
#[cfg(target_os = "linux")]
pub(crate) fn written() -> usize {
    kib_of("Anonymous:") << 10
}

#[cfg(target_os = "linux")]
fn kib_of(what: &str) -> usize {
    let sizes = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = sizes.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}
