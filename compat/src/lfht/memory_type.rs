//! `struct cds_lfht_mm_type`: how a table's buckets lie in memory. There are the library's three
//! types.
//!
//! A type of the program's own is refused. Its functions would have to make a `struct cds_lfht`,
//! whose members no public header declares: only code with liburcu's private header could do that.

use std::ffi::c_ulong;
use std::ptr::{self, NonNull};

use quiescence::intrusive::{Node, TableMemory};

use super::allocator::Functions;
use super::{Raw, Readers, Table, make, table};
use crate::fatal::fatal;

/// The table behind C's pointer; fatal unless it has this memory type.
///
/// # Safety
/// As [`table`].
unsafe fn table_of(raw: &Raw, memory: TableMemory) -> &Table {
    // SAFETY: by the contract.
    let table = unsafe { table(raw) };
    if table.memory() != memory {
        let is = table.memory();
        fatal(format_args!(
            "a function of one struct cds_lfht_mm_type ({memory:?}) was called with a table made \
             with another one ({is:?})"
        ));
    }
    table
}

/// `struct cds_lfht_mm_type`.
#[repr(C)]
pub(crate) struct MemoryType {
    /// Programs compiled against liburcu 0.13 pass only the first two arguments.
    alloc_cds_lfht: unsafe extern "C" fn(c_ulong, c_ulong, *const Functions) -> Raw,
    alloc_bucket_table: unsafe extern "C" fn(Raw, c_ulong),
    free_bucket_table: unsafe extern "C" fn(Raw, c_ulong),
    bucket_at: unsafe extern "C" fn(Raw, c_ulong) -> *mut Node,
}

/// Defines the four functions of a memory type.
macro_rules! memory_type {
    ($memory:ident: $new:ident $allocate:ident $free:ident $at:ident) => {
        exported! {
            /// An empty table of this memory type, without flavour and flags; NULL if there is no
            /// memory. The third argument is ignored, as a program compiled against liburcu 0.13
            /// passes none.
            fn $new(min: c_ulong, max: c_ulong, _alloc: *const Functions) -> Raw {
                let readers = Readers { flavor: ptr::null(), attr: ptr::null_mut() };
                make([1, min, max], 0, Some(TableMemory::$memory), readers, None)
            }

            /// Allocates the buckets of this order: order 0 are those that come with the table,
            /// and order k are those from 2^(k-1) on.
            fn $allocate(ht: Raw, order: c_ulong) {
                let count = u32::try_from(order).ok().and_then(|order| 1_usize.checked_shl(order));
                let table = table_of(&ht, TableMemory::$memory);
                if !count.is_some_and(|count| table.allocate(count)) {
                    fatal(format_args!(
                        "no memory for the buckets of a hash table of order {order}"
                    ));
                }
            }

            /// Frees the buckets of this and higher orders, except those that are in use, which the
            /// table frees when it shrinks.
            fn $free(ht: Raw, order: c_ulong) {
                let table = table_of(&ht, TableMemory::$memory);
                let below = u32::try_from(order).ok().and_then(|order| order.checked_sub(1));
                // Order 0 is never freed by itself.
                if let Some(count) = below.and_then(|below| 1_usize.checked_shl(below)) {
                    table.free_unused(count);
                }
            }

            /// The node of a bucket; NULL if it has no memory.
            fn $at(ht: Raw, index: c_ulong) -> *mut Node {
                let bucket = table_of(&ht, TableMemory::$memory).bucket_at(index as usize);
                bucket.map_or(ptr::null_mut(), NonNull::as_ptr)
            }
        }
    };
}

memory_type! { Order:
    quiescence_cds_lfht_mm_order_alloc_cds_lfht
    quiescence_cds_lfht_mm_order_alloc_bucket_table
    quiescence_cds_lfht_mm_order_free_bucket_table
    quiescence_cds_lfht_mm_order_bucket_at
}
memory_type! { Chunk:
    quiescence_cds_lfht_mm_chunk_alloc_cds_lfht
    quiescence_cds_lfht_mm_chunk_alloc_bucket_table
    quiescence_cds_lfht_mm_chunk_free_bucket_table
    quiescence_cds_lfht_mm_chunk_bucket_at
}
memory_type! { Mmap:
    quiescence_cds_lfht_mm_mmap_alloc_cds_lfht
    quiescence_cds_lfht_mm_mmap_alloc_bucket_table
    quiescence_cds_lfht_mm_mmap_free_bucket_table
    quiescence_cds_lfht_mm_mmap_bucket_at
}

/// The memory type that a client has chosen. It is recognised by its first function, since an
/// executable may have a copy of the structure.
pub(super) fn memory_of(mm: &MemoryType) -> TableMemory {
    let kinds = [
        (quiescence_cds_lfht_mm_order_alloc_cds_lfht as *const (), TableMemory::Order),
        (quiescence_cds_lfht_mm_chunk_alloc_cds_lfht as *const (), TableMemory::Chunk),
        (quiescence_cds_lfht_mm_mmap_alloc_cds_lfht as *const (), TableMemory::Mmap),
    ];
    let new = mm.alloc_cds_lfht as *const ();
    let Some((_, memory)) = kinds.into_iter().find(|(function, _)| ptr::eq(*function, new)) else {
        fatal(format_args!(
            "cds_lfht: the program's own memory types are not supported; pass \
             &cds_lfht_mm_order, &cds_lfht_mm_chunk, &cds_lfht_mm_mmap or NULL"
        ))
    };
    memory
}
