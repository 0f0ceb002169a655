//! What the torture has of our crate alone: a cell, and objects that are dropped later.

use core::ptr::NonNull;

use conformance::torture::{Object, SLOTS, Torture, spin};
use conformance::{Machine, What};
use kernel::{Domain, Head, NonNullPtr, RcuDrop, RcuOption, Refused, Run, Zone};

use crate::hart::{Section, TICK};
use crate::platform::{Board, KERNEL};
use crate::torture::TORTURE;

static CELL: RcuOption<Owner, Board> = RcuOption::new_none();

// SAFETY: a `Section` is one for the kernel's readers, with its compiler fences; simulated NMIs
// update nothing.
unsafe impl Domain for Board {
    type Section = Section;

    fn section() -> Section {
        Section::new()
    }

    unsafe fn call(head: NonNull<Head>, run: Run) -> Result<Zone, Refused> {
        // SAFETY: the caller's.
        unsafe { KERNEL.call(head, run) }
    }
}

/// The owner of an object, which is given back when this is dropped.
struct Owner(&'static Object<Head>);

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: this is its owner, and is dropped a grace period after readers found it.
        unsafe { TORTURE.give(self.0) };
    }
}

// SAFETY: objects stay in their place; whoever takes a free one is its one owner, and its head is
// at its beginning.
unsafe impl NonNullPtr for Owner {
    type Target = Object<Head>;
    type Ref<'a> = &'a Object<Head>;

    const ALIGN_BITS: u32 = align_of::<Object<Head>>().trailing_zeros();

    fn into_raw(self) -> NonNull<Object<Head>> {
        NonNull::from(core::mem::ManuallyDrop::new(self).0)
    }

    unsafe fn from_raw(raw: NonNull<Object<Head>>) -> Self {
        // SAFETY: objects are never freed as memory.
        Self(unsafe { raw.as_ref() })
    }

    unsafe fn raw_as_ref<'a>(raw: NonNull<Object<Head>>) -> &'a Object<Head> {
        // SAFETY: as above.
        unsafe { raw.as_ref() }
    }

    fn ref_as_raw(reference: &Object<Head>) -> NonNull<Object<Head>> {
        NonNull::from(reference)
    }

    unsafe fn head_of(raw: NonNull<Object<Head>>) -> NonNull<Head> {
        raw.cast()
    }

    unsafe fn of_head(head: NonNull<Head>) -> NonNull<Object<Head>> {
        head.cast()
    }
}

/// Reads the cell, and replaces what is in it, or takes an object that readers find elsewhere out
/// of there, to be dropped later. At the end empties the cell.
pub(crate) fn use_one(torture: &'static Torture<Board>, is_over: bool) {
    if is_over {
        return CELL.update(None);
    }
    let guard = CELL.read();
    if let Some(object) = guard.get() {
        torture.watch(object, What::Own, || spin::<Board>(Board::roll(8 * TICK)));
    }
    if Board::roll(4) == 0 {
        let old = torture.replace(Board::roll(SLOTS as u64) as usize);
        return drop(old.map(|old| RcuDrop::<_, Board>::new(Owner(old))));
    }
    let Some(new) = torture.take() else { return };
    let new = Some(Owner(new));
    match Board::roll(3) {
        0 => drop(guard.compare_exchange(new)),
        1 => CELL.update(new),
        _ => drop(guard.compare_exchange(None)),
    }
}
