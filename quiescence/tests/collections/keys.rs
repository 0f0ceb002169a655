//! Keys and values of the maps' tests.

use crate::common::*;
use std::fmt::Debug;

/// Made of a number.
pub(crate) trait Of: Clone + Ord + Hash + Debug + Weigh + Send + Sync + 'static {
    fn of(number: u64) -> Self;
}

macro_rules! of {
    ($($type:ty: |$number:ident| $of:expr),*) => {
        $(impl Of for $type {
            fn of($number: u64) -> Self {
                $of
            }
        })*
    };
}

of! {
    (): |_number| (),
    u8: |number| number as u8,
    u32: |number| number as u32,
    u64: |number| number,
    char: |number| char::from_u32(number as u32).unwrap(),
    [u8; 3]: |number| [number as u8, (number >> 8) as u8, 0],
    [u64; 2]: |number| [number, !number],
    [u64; 5]: |number| [number; 5],
    (u64, u32): |number| (number, number as u32),
    String: |number| format!("number {number}"),
    Box<str>: |number| format!("number {number}").into()
}

pub(crate) type GoodHash = std::hash::RandomState;
