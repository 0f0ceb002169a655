//! Completes the executable's copy of a flavour's structure: writes the fields that liburcu 0.14
//! added, if the copy has room for them.
//!
//! A program that is not position-independent throughout contains a copy of `urcu_memb_flavor`. The
//! copy has the size of the structure when the program was linked: 112 bytes with liburcu 0.13, 128
//! with later versions. The dynamic linker copies as many bytes as both sides have, and warns if
//! the library's symbol is larger than the program's. So the library's symbol has 112 bytes, which
//! suits every program. This module writes the last 16 bytes if the program's own symbol has them,
//! and touches nothing behind byte 112 otherwise.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use crate::fatal::warn;
use crate::flavor::Flavor;

/// The size of the structure in liburcu 0.13, in bytes.
const OLD: usize = 112;
/// Its size in 0.14 and 0.15, which added the functions of the poll interface.
const WHOLE: usize = 128;

/// `dladdr1`'s flag for the entry in the symbol table.
const SYMBOL_ENTRY: c_int = 1;

exported! {
    /// Completes the executable's copy, if `found` is one.
    ///
    /// `found` is the address of `urcu_FLAVOR_flavor` by the dynamic linker, and `whole` is the
    /// library's structure of [`WHOLE`] bytes. The library is being initialised, so no other thread
    /// can read the copy.
    fn quiescence_urcu_complete_flavor(flavor: c_uint, found: *mut c_void, whole: *const c_void) {
        let flavor = Flavor::from_raw(flavor);
        if ptr::eq(found, whole) || size_of_copy(flavor, found) < WHOLE {
            return;
        }
        let (to, from) = (found.wrapping_byte_add(OLD), whole.wrapping_byte_add(OLD));
        // SAFETY: it has `WHOLE` bytes, by its symbol.
        if to.cast::<[usize; 2]>().read() == from.cast::<[usize; 2]>().read() {
            return;
        }
        // The dynamic linker made them read-only once the program was relocated.
        let protected = relocated_pages(to.addr(), WHOLE - OLD);
        let protect = |protection| {
            let Some((start, bytes)) = protected else { return true };
            // SAFETY: whole pages of an executable's data, whose content does not change.
            unsafe { libc::mprotect(start, bytes, protection) == 0 }
        };
        if !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return warn(format_args!(
                "{flavor}_flavor: the program's copy of it cannot be written, so its poll \
                 functions are NULL; call start_poll_synchronize_rcu() and \
                 poll_state_synchronize_rcu() by their names"
            ));
        }
        // SAFETY: it has `WHOLE` bytes, by its symbol, and is writable.
        ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), WHOLE - OLD);
        // If this fails they stay writable, as they were before the program was relocated.
        _ = protect(libc::PROT_READ);
    }
}

/// The size, in bytes, of the symbol of the structure at this address; 0 if there is none of its
/// name.
fn size_of_copy(flavor: Flavor, place: *const c_void) -> usize {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let mut entry: *mut libc::Elf64_Sym = ptr::null_mut();
    let entry_place = (&raw mut entry).cast::<*mut c_void>();
    // SAFETY: any address, and places for the results.
    let is_found =
        unsafe { libc::dladdr1(place, info.as_mut_ptr(), entry_place, SYMBOL_ENTRY) } != 0;
    // SAFETY: zeroes are a valid value.
    let info = unsafe { info.assume_init() };
    if !is_found || info.dli_sname.is_null() || !ptr::eq(info.dli_saddr, place) {
        return 0;
    }
    // SAFETY: a name in the object's table of names.
    let name = unsafe { CStr::from_ptr(info.dli_sname) }.to_str().unwrap_or_default();
    let is_it = name.strip_suffix("_flavor") == Some(flavor.name());
    // SAFETY: null, or an entry of the object's table, which lives as long as the object.
    let entry = unsafe { entry.as_ref() };
    entry.filter(|_| is_it).map_or(0, |entry| entry.st_size as usize)
}

/// The pages of these bytes, which are the executable's, that are read-only once it is relocated
/// (RELRO): their address, and how many bytes they have. `None` if the bytes are in no such range.
fn relocated_pages(from: usize, bytes: usize) -> Option<(*mut c_void, usize)> {
    // SAFETY: asks for numbers. They are those of the executable, also if the dynamic linker was
    // started by its name.
    let [place, count] =
        [libc::AT_PHDR, libc::AT_PHNUM].map(|about| unsafe { libc::getauxval(about) } as usize);
    let first = NonNull::new(ptr::with_exposed_provenance_mut::<libc::Elf64_Phdr>(place))?;
    // SAFETY: the executable's headers, which stay.
    let headers = unsafe { std::slice::from_raw_parts(first.as_ptr(), count) };
    let of_kind = |kind| headers.iter().find(|header| header.p_type == kind);
    // One that does not say where they belong is where it was linked to be.
    let base = of_kind(libc::PT_PHDR).map_or(0, |own| place.wrapping_sub(own.p_vaddr as usize));
    let relro = of_kind(libc::PT_GNU_RELRO)?;
    // SAFETY: `sysconf` has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let down = |address: usize| address & !(page - 1);
    let begins = base.wrapping_add(relro.p_vaddr as usize);
    // Rounded as the dynamic linker does: the last page is not protected unless it is whole.
    let (start, end) = (down(begins), down(begins + relro.p_memsz as usize));
    let (start, end) = (down(from).max(start), down(from + bytes + page - 1).min(end));
    (start < end).then(|| (ptr::with_exposed_provenance_mut(start), end - start))
}
