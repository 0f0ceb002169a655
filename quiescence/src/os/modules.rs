//! Where a code address is: in which mapped file (the program or a shared library), at which offset
//! there, and in which function, if the dynamic linker knows it.
//!
//! No file is read: there are no symbols except the dynamic linker's, and no debug information. The
//! look-up takes the linker's locks, one after the other, and allocates nothing under them.

use std::path::PathBuf;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) module: PathBuf,
    /// As the file's own tables count: what `addr2line` and debuggers take.
    pub(crate) offset: usize,
    /// As the dynamic linker has it: of functions that are exported, and not demangled.
    pub(crate) function: Option<String>,
}

/// Where the instruction at this address is. `None` if it is in no file, or the system does not
/// tell.
pub(crate) fn place_of(address: usize) -> Option<Place> {
    imp::place_of(address)
}

#[cfg(all(feature = "stacks", target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::ffi::{CStr, OsStr};
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;
    use std::path::PathBuf;
    use std::ptr;

    use libc::{c_int, c_void, dl_phdr_info, size_t};

    use super::Place;

    /// Bytes of a file's name: `PATH_MAX`.
    const NAME_MAX: usize = 4_096;
    /// Bytes of a function's name that are shown.
    const FUNCTION_MAX: usize = 1_024;

    /// What is looked for, and the file when that is found. Its name is copied, since the linker
    /// may drop the file as soon as it has its lock back.
    struct Search {
        address: usize,
        offset: Option<usize>,
        name: [u8; NAME_MAX],
        name_bytes: usize,
    }

    pub(super) fn place_of(address: usize) -> Option<Place> {
        let mut search = Search { address, offset: None, name: [0; NAME_MAX], name_bytes: 0 };
        // SAFETY: `look` takes what it is given here, which lives longer than the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        let offset = search.offset?;
        let module = match &search.name[..search.name_bytes] {
            [] => std::env::current_exe().ok()?, // the program has no name there
            name => PathBuf::from(OsStr::from_bytes(name)),
        };
        Some(Place { module, offset, function: function_at(address) })
    }

    /// Ends the search, by 1, at the file that has the address.
    unsafe extern "C" fn look(file: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
        // SAFETY: what `place_of` gives, which does nothing with it meanwhile.
        let search = unsafe { &mut *search.cast::<Search>() };
        // SAFETY: the linker's description of a file that is mapped as long as this runs.
        let file = unsafe { &*file };
        let (first, count) = (file.dlpi_phdr, usize::from(file.dlpi_phnum));
        if first.is_null() {
            return 0;
        }
        // SAFETY: as above: so many headers are there.
        let segments = unsafe { std::slice::from_raw_parts(first, count) };
        let offset = search.address.wrapping_sub(file.dlpi_addr as usize);
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
        use super::place_of;

        #[test]
        fn code_is_found_in_its_file() {
            let ours = code_is_found_in_its_file as fn() as usize;
            let place = place_of(ours).unwrap();
            assert_eq!(place.module, std::env::current_exe().unwrap());
            assert!(place.offset < ours, "{place:?}");
            assert_eq!(place_of(ours + 1).unwrap().offset, place.offset + 1);
            let of_c = place_of(libc::getppid as *const () as usize).unwrap();
            assert!(of_c.module.to_str().unwrap().contains("libc"), "{of_c:?}");
            assert_eq!(of_c.function.as_deref(), Some("getppid"));
            assert_eq!(place_of(1), None);
        }
    }
}

#[cfg(not(all(feature = "stacks", target_os = "linux", target_env = "gnu")))]
mod imp {
    pub(super) fn place_of(_: usize) -> Option<super::Place> {
        None
    }
}
