//! Where a code address is: in which mapped file (the program or a shared library), at which offset
//! there, and in which function, if the dynamic linker knows it.
//!
//! No file is read: there are no symbols except the dynamic linker's, and no debug information. The
//! look-up takes the linker's locks, one after the other, and allocates nothing under them.

use std::fmt;
use std::path::PathBuf;

/// A frame of a stack.
///
/// The library reads neither symbols nor debug information. From [`module`](Self::module) and
/// [`offset`](Self::offset), `addr2line` (of binutils or LLVM) finds the function, the line, and
/// inlined calls; a printed report includes the command for each stack. A hook can also resolve
/// [`address`](Self::address) within the process, with a crate that reads symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackFrame {
    /// The instruction pointer: where the thread was, or, for a caller, the return address.
    pub address: usize,
    /// The file that contains the code: the program, or a shared library. `None` if it is in no
    /// file.
    pub module: Option<PathBuf>,
    /// The position of the instruction in the file, as the file's own tables count; for a caller,
    /// that of its call, shortly before [`address`](Self::address). `None` if it is in no file.
    pub offset: Option<usize>,
    /// The function, if the dynamic linker knows it, which is true of functions that shared
    /// libraries export. Not demangled.
    pub function: Option<String>,
}

impl fmt::Display for StackFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, module, offset, function } = self;
        let (Some(module), Some(offset)) = (module, offset) else {
            return write!(f, "{address:#x}");
        };
        write!(f, "{}+{offset:#x}", module.display())?;
        match function {
            Some(function) => write!(f, " ({function})"),
            None => Ok(()),
        }
    }
}

pub(crate) use imp::find;

#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::ffi::{CStr, OsStr};
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::ptr;

    use libc::{c_int, c_void, dl_phdr_info, size_t};

    use super::StackFrame;

    /// Bytes of a file's name: `PATH_MAX`.
    const NAME_MAX: usize = 4_096;
    /// Bytes of a function's name that are shown.
    const FUNCTION_MAX: usize = 1_024;

    /// What is looked for, and the file when that is found. Its name is copied, since the linker
    /// may drop the file as soon as it has its lock back.
    struct Search {
        at: usize,
        offset: Option<usize>,
        name: [u8; NAME_MAX],
        name_bytes: usize,
    }

    /// The frame with this address, whose instruction is at `at`. `None` if that is in no file, or
    /// the system does not tell.
    pub(crate) fn find(address: usize, at: usize) -> Option<StackFrame> {
        let mut search = Search { at, offset: None, name: [0; NAME_MAX], name_bytes: 0 };
        // SAFETY: `look` takes what it is given here, which lives longer than the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        let offset = search.offset?;
        let module = match &search.name[..search.name_bytes] {
            [] => std::env::current_exe().ok()?, // the program has no name there
            name => PathBuf::from(OsStr::from_bytes(name)),
        };
        let (module, offset, function) = (Some(module), Some(offset), function_at(at));
        Some(StackFrame { address, module, offset, function })
    }

    /// Ends the search, by 1, at the file that has the address.
    unsafe extern "C" fn look(file: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
        // SAFETY: what `find` gives, which does nothing with it meanwhile.
        let search = unsafe { &mut *search.cast::<Search>() };
        // SAFETY: the linker's description of a file that is mapped as long as this runs.
        let file = unsafe { &*file };
        let (first, count) = (file.dlpi_phdr, usize::from(file.dlpi_phnum));
        if first.is_null() {
            return 0;
        }
        // SAFETY: as above: so many headers are there.
        let segments = unsafe { std::slice::from_raw_parts(first, count) };
        let offset = search.at.wrapping_sub(file.dlpi_addr as usize);
        let has_it = segments.iter().any(|segment| {
            let into = offset.wrapping_sub(segment.p_vaddr as usize);
            segment.p_type == libc::PT_LOAD && into < segment.p_memsz as usize
        });
        if !has_it {
            return 0;
        }
        search.offset = Some(offset);
        if !file.dlpi_name.is_null() {
            // SAFETY: a string of the linker's.
            let name = unsafe { CStr::from_ptr(file.dlpi_name) }.to_bytes();
            search.name_bytes = name.len().min(NAME_MAX);
            search.name[..search.name_bytes].copy_from_slice(&name[..search.name_bytes]);
        }
        1
    }

    /// The function's name. It is in the file that has the function, and the program may drop that
    /// at any time: so the system copies it, which says no where nothing is mapped any more.
    fn function_at(address: usize) -> Option<String> {
        // SAFETY: plain data, for which zero is a value.
        let mut found: libc::Dl_info = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: compares the address with those of files, and writes to `found`.
        let told = unsafe { libc::dladdr(ptr::without_provenance(address), &raw mut found) };
        if told == 0 || found.dli_sname.is_null() {
            return None;
        }
        let mut name = [0_u8; FUNCTION_MAX];
        let here = libc::iovec { iov_base: name.as_mut_ptr().cast(), iov_len: FUNCTION_MAX - 1 };
        let there =
            libc::iovec { iov_base: found.dli_sname.cast_mut().cast(), iov_len: FUNCTION_MAX - 1 };
        let process = libc::pid_t::try_from(std::process::id()).ok()?;
        // SAFETY: writes to `name`, of that length, and reads nothing but by the system's leave.
        let copied =
            unsafe { libc::process_vm_readv(process, &raw const here, 1, &raw const there, 1, 0) };
        let copied = usize::try_from(copied).ok().filter(|bytes| *bytes != 0)?;
        let name = CStr::from_bytes_until_nul(&name[..=copied]).ok()?;
        Some(name.to_string_lossy().into_owned())
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn code_is_found_in_its_file() {
            let find = |at| super::find(7, at);
            let ours = code_is_found_in_its_file as fn() as usize;
            let frame = find(ours).unwrap();
            assert_eq!(frame.address, 7);
            assert_eq!(frame.module, std::env::current_exe().ok());
            let offset = frame.offset.unwrap();
            assert!(offset < ours, "{frame:?}");
            assert_eq!(find(ours + 1).unwrap().offset, Some(offset + 1));
            let of_c = find(libc::getppid as *const () as usize).unwrap();
            let module = of_c.module.as_deref().unwrap();
            assert!(module.to_str().unwrap().contains("libc"), "{of_c:?}");
            assert_eq!(of_c.function.as_deref(), Some("getppid"));
            assert_eq!(find(1), None);
        }
    }
}

#[cfg(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")))]
mod imp {
    pub(crate) fn find(_: usize, _: usize) -> Option<super::StackFrame> {
        None
    }
}
