//! What the types of the standard library own, and the settings of this one; and how the rooms
//! above say it of theirs.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::marker::PhantomData;
use std::num::{self, Saturating, Wrapping};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic;
use std::sync::{Arc, Mutex, OnceLock, RwLock, TryLockError, TryLockResult, Weak};
use std::{net, time};

use super::Weigh;
use crate::gp::engine::Engine;
use crate::gp::tuning::Tuning;
use crate::os::fence::Fences;
use crate::os::percpu::PerCpuPath;

/// What one of each type owns: its generics, the type, whether some value owns anything, and the
/// bytes, unless no value does.
macro_rules! owns {
    ($(
        $(#[$doc:meta])* [$($generics:tt)*] $type:ty, $owns:expr $(, |$value:ident| $bytes:expr)?;
    )*) => {
        $($(#[$doc])*
        impl<$($generics)*> $crate::reclaim::weigh::Weigh for $type {
            const OWNS: bool = $owns;

            $(fn owned(&self) -> usize {
                if !Self::OWNS {
                    return 0;
                }
                let $value = self;
                $bytes
            })?
        })*
    };
}
pub(crate) use owns;

// ---- nothing ------------------------------------------------------------------------------------

macro_rules! own_nothing {
    ($($type:ty),* $(,)?) => {
        $(impl Weigh for $type {
            const OWNS: bool = false;
        })*
    };
}

own_nothing! {
    (), bool, char, f32, f64,
    i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize,
    num::NonZeroI8, num::NonZeroI16, num::NonZeroI32, num::NonZeroI64, num::NonZeroI128, num::NonZeroIsize,
    num::NonZeroU8, num::NonZeroU16, num::NonZeroU32, num::NonZeroU64, num::NonZeroU128, num::NonZeroUsize,
    time::Duration, time::Instant, time::SystemTime,
    net::TcpListener, net::TcpStream, net::UdpSocket, std::fs::File, std::sync::Condvar,
    net::IpAddr, net::Ipv4Addr, net::Ipv6Addr, net::SocketAddr, net::SocketAddrV4, net::SocketAddrV6,
    std::cmp::Ordering, std::any::TypeId, std::thread::ThreadId, std::alloc::Layout,
    atomic::AtomicBool, atomic::AtomicI8, atomic::AtomicI16, atomic::AtomicI32, atomic::AtomicI64,
    atomic::AtomicIsize, atomic::AtomicU8, atomic::AtomicU16, atomic::AtomicU32, atomic::AtomicU64,
    atomic::AtomicUsize, str, OsStr, CStr, Path, Engine, Tuning, Fences, PerCpuPath,
}

owns! {
    /// Shared, or not known: counts for nothing.
    [T: ?Sized] Weak<T>, false;
    [T: ?Sized] *const T, false;
    [T: ?Sized] *mut T, false;
    [T: ?Sized] NonNull<T>, false;
    [T: ?Sized] PhantomData<T>, false;
    [T] atomic::AtomicPtr<T>, false;
    [T] &[T], false;
    [R] fn() -> R, false;
    [R, A] fn(A) -> R, false;
    [R, A, B] fn(A, B) -> R, false;
    [R, A, B, C] fn(A, B, C) -> R, false;
    [R, A, B, C, D] fn(A, B, C, D) -> R, false;
}

// Not all references: where `&Config` were `Weigh`, the compiler would suggest a borrow to those
// whose `Config` is not, in place of the derive.
own_nothing! { &str, &CStr, &OsStr, &Path }

// ---- what is in it ------------------------------------------------------------------------------

macro_rules! tuples {
    ($($field:ident $place:tt),*) => {
        impl<$($field: Weigh),*> Weigh for ($($field,)*) {
            const OWNS: bool = $($field::OWNS)||*;

            fn owned(&self) -> usize {
                0_usize $(.saturating_add(self.$place.owned()))*
            }
        }
    };
}

tuples! { A 0 }
tuples! { A 0, B 1 }
tuples! { A 0, B 1, C 2 }
tuples! { A 0, B 1, C 2, D 3 }
tuples! { A 0, B 1, C 2, D 3, E 4 }
tuples! { A 0, B 1, C 2, D 3, E 4, F 5 }
tuples! { A 0, B 1, C 2, D 3, E 4, F 5, G 6 }
tuples! { A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7 }

/// What elements own; without a look at them, if that is nothing.
pub(crate) fn all<'a, T: Weigh + 'a>(elements: impl IntoIterator<Item = &'a T>) -> usize {
    if !T::OWNS {
        return 0;
    }
    elements.into_iter().fold(0, |sum, element| sum.saturating_add(element.owned()))
}

/// So many of a type.
const fn room_for<T>(count: usize) -> usize {
    count.saturating_mul(size_of::<T>())
}

owns! {
    [T: Weigh] [T], T::OWNS, |list| all(list);
    [T: Weigh, const N: usize] [T; N], T::OWNS, |list| all(list);
    [T: Weigh] Option<T>, T::OWNS, |value| value.as_ref().map_or(0, T::owned);
}

/// What a lock gives, poisoned or not.
fn unless_locked<G>(tried: TryLockResult<G>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

// ---- one owner ----------------------------------------------------------------------------------

owns! {
    [T: ?Sized + Weigh] Box<T>, true, |owner| (**owner).weight();
    [T: ?Sized + Weigh] Pin<Box<T>>, true, |owner| (**owner).weight();
    /// All of it, if this is the last one; else it is others' as well, and counts for nothing.
    [T: ?Sized + Weigh] Arc<T>, true, |owner| match Self::strong_count(owner) {
        1 => (**owner).weight().saturating_add(2 * size_of::<usize>()),
        _ => 0,
    };
    [T: Weigh, E: Weigh] Result<T, E>, T::OWNS || E::OWNS, |result| match result {
        Ok(value) => value.owned(),
        Err(error) => error.owned(),
    };
    [B: ?Sized + ToOwned<Owned: Weigh>] Cow<'_, B>, true, |value| match value {
        Cow::Borrowed(_) => 0,
        Cow::Owned(value) => value.owned(),
    };
    [T: Weigh] Reverse<T>, T::OWNS, |wrapper| wrapper.0.owned();
    [T: Weigh] Wrapping<T>, T::OWNS, |wrapper| wrapper.0.owned();
    [T: Weigh] Saturating<T>, T::OWNS, |wrapper| wrapper.0.owned();
    [T: Weigh] Range<T>, T::OWNS, |range| range.start.owned().saturating_add(range.end.owned());
    [T: Weigh] RangeInclusive<T>, T::OWNS, |range| {
        range.start().owned().saturating_add(range.end().owned())
    };
    /// What is locked at that moment counts for nothing: its owner may be waiting for the thread
    /// that asks.
    [T: Weigh] Mutex<T>, T::OWNS, |lock| {
        unless_locked(lock.try_lock()).map_or(0, |value| value.owned())
    };
    /// As a [`Mutex`], where it is locked for writing.
    [T: Weigh] RwLock<T>, T::OWNS, |lock| {
        unless_locked(lock.try_read()).map_or(0, |value| value.owned())
    };
    [T: Weigh] OnceLock<T>, T::OWNS, |cell| cell.get().map_or(0, T::owned);
}

// ---- text ---------------------------------------------------------------------------------------

owns! {
    [] String, true, |text| text.capacity();
    [] OsString, true, |text| text.capacity();
    [] PathBuf, true, |path| path.capacity();
    [] CString, true, |text| text.as_bytes_with_nul().len();
}

// ---- collections --------------------------------------------------------------------------------

/// Of a hash table with room for so many: seven of eight buckets, their number a power of two, a
/// byte each.
fn table<T>(capacity: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    let buckets = (capacity.saturating_mul(8) / 7).checked_next_power_of_two();
    buckets.unwrap_or(usize::MAX).saturating_mul(size_of::<T>() + 1)
}

/// Of a B-tree of so many: nodes have room for eleven, and are about half full.
fn tree<T>(count: usize) -> usize {
    const FULL: usize = 11;
    let node = FULL * size_of::<T>() + 4 * size_of::<usize>();
    count.div_ceil(FULL / 2 + 1).saturating_mul(node)
}

owns! {
    [T: Weigh] Vec<T>, true, |list| room_for::<T>(list.capacity()).saturating_add(all(list));
    [T: Weigh] VecDeque<T>, true, |list| room_for::<T>(list.capacity()).saturating_add(all(list));
    [T: Weigh] BinaryHeap<T>, true, |heap| room_for::<T>(heap.capacity()).saturating_add(all(heap));
    [T: Weigh] LinkedList<T>, true, |list| {
        room_for::<(T, [usize; 2])>(list.len()).saturating_add(all(list))
    };
    [K: Weigh, V: Weigh, S] HashMap<K, V, S>, true, |map| {
        let elements = all(map.keys()).saturating_add(all(map.values()));
        table::<(K, V)>(map.capacity()).saturating_add(elements)
    };
    [T: Weigh, S] HashSet<T, S>, true, |set| table::<T>(set.capacity()).saturating_add(all(set));
    [K: Weigh, V: Weigh] BTreeMap<K, V>, true, |map| {
        let elements = all(map.keys()).saturating_add(all(map.values()));
        tree::<(K, V)>(map.len()).saturating_add(elements)
    };
    [T: Weigh] BTreeSet<T>, true, |set| tree::<T>(set.len()).saturating_add(all(set));
}
