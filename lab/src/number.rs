//! Numbers as users type them, and what to tell those who typed something else.
//!
//! The standard library's errors ("invalid float literal") are a programmer's words. Every number
//! of a flag or of a workload file is read here, so that all of them are refused alike.

use std::num::{IntErrorKind, ParseIntError};
use std::ops::RangeInclusive;
use std::str::FromStr;

use clap::builder::RangedI64ValueParser;

/// Takes whole numbers within these limits as the values of a flag.
pub(crate) fn within(limits: RangeInclusive<i64>) -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(limits)
}

/// A whole number; its limits are the caller's.
pub(crate) fn whole<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| no_whole(text, error.kind()))
}

/// Why a text is no whole number.
pub(crate) fn no_whole(text: &str, kind: &IntErrorKind) -> String {
    // A type without a sign calls a minus an invalid digit.
    let digits = text.strip_prefix('-').unwrap_or_default();
    let is_negative = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match kind {
        IntErrorKind::PosOverflow => format!("{text} is too large"),
        IntErrorKind::NegOverflow => format!("{text} is too small"),
        IntErrorKind::InvalidDigit if is_negative => {
            format!("{text} is too small: it is below 0")
        }
        _ => format!("{text:?} is not a whole number; write digits, as in 4"),
    }
}

/// A number, which may have a fraction; its limits are the caller's.
pub(crate) fn real(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number; write digits, as in 99.5"))
}

/// The message of a deserializer, with the names of Rust's types replaced by what to write.
pub(crate) fn without_type_names(message: &str) -> String {
    message
        .replace("expected f64", "expected a number, as in 99.5")
        .replace("expected i64", "expected a whole number, as in 4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_have_a_sign_and_a_fraction_and_no_type() {
        assert_eq!(whole("-3"), Ok(-3_i64));
        assert_eq!(real("0.5"), Ok(0.5));
        assert_eq!(without_type_names("x, expected f64"), "x, expected a number, as in 99.5");
    }
}
